#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/check.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

Activation ToActivation(const nlohmann::json& config) {
  std::string name = config.at("activation");
  if (config.value("approximate", false)) name += "_approximate";
  for (int i = 0; i <= static_cast<int>(Activation::kHardSigmoidKeras2); ++i) {
    const Activation activation = static_cast<Activation>(i);
    if (ActivationName(activation) == name) return activation;
  }
  MUSTER_CHECK(false && "unknown activation");
  return Activation::kLinear;
}

LayerPtr MakeNormalization(const GoldenCase& golden) {
  NormalizationOptions options{
      .per_feature = !golden.config.at("axis").is_null(),
      .invert = golden.config.at("invert")};
  const auto data = golden.inputs.find("data");
  if (data == golden.inputs.end()) {
    const Tensor& mean = golden.inputs.at("mean");
    const Tensor& variance = golden.inputs.at("variance");
    options.mean.assign(mean.flat<float>().begin(), mean.flat<float>().end());
    options.variance.assign(variance.flat<float>().begin(),
                            variance.flat<float>().end());
    return Normalization(options);
  }
  const auto layer = MakeLayer<NormalizationLayer>(options);
  // Observes the data in two calls, as in batches.
  EXPECT_OK(layer->Observe(data->second.SliceRows(0, 5)));
  EXPECT_OK(
      layer->Observe(data->second.SliceRows(5, data->second.shape().dim(0))));
  const int64_t count = layer->mean().element_count();
  EXPECT_EQ(
      DescribeDifference(layer->mean().Reshaped({count}),
                         golden.outputs.at("mean").Reshaped({count}), 1e-6),
      "");
  EXPECT_EQ(
      DescribeDifference(layer->variance().Reshaped({count}),
                         golden.outputs.at("variance").Reshaped({count}), 1e-6),
      "");
  return layer;
}

LayerPtr MakeLayer(const GoldenCase& golden) {
  const nlohmann::json& config = golden.config;
  const std::string name = config.at("class_name");
  if (name == "Dense") {
    return Dense(config.at("units"), {.activation = ToActivation(config),
                                      .use_bias = config.at("use_bias"),
                                      .name = "layer"});
  }
  if (name == "Activation") return Activate(ToActivation(config));
  if (name == "Flatten") return Flatten();
  if (name == "Embedding") {
    return Embedding(config.at("input_dim"), config.at("output_dim"),
                     {.name = "layer"});
  }
  MUSTER_CHECK(name == "Normalization");
  return MakeNormalization(golden);
}

// Returns the values of the weights by their names in the model.
std::map<std::string, Tensor> Variables(const GoldenCase& golden) {
  std::map<std::string, Tensor> variables;
  for (const char* name : {"kernel", "bias", "embeddings"}) {
    const auto found = golden.inputs.find(name);
    if (found != golden.inputs.end()) {
      variables[absl::StrCat("layer/", name)] = found->second;
    }
  }
  if (golden.inputs.count("data") > 0) {
    variables["layer/mean"] = golden.outputs.at("mean");
    variables["layer/variance"] = golden.outputs.at("variance");
  }
  return variables;
}

TEST(LayersGoldenTest, MatchKerasWithTheirGradients) {
  for (const GoldenCase& golden : ReadGoldenCases("layers.json")) {
    SCOPED_TRACE(golden.name);
    const LayerPtr layer = MakeLayer(golden);
    layer->SetPath("layer");
    std::map<std::string, Tensor> variables = Variables(golden);
    // Keras stores them with the rank of the input.
    for (const char* name : {"layer/mean", "layer/variance"}) {
      const auto found = variables.find(name);
      if (found == variables.end()) continue;
      const bool is_scalar = found->second.element_count() == 1;
      found->second = found->second.Reshaped(
          is_scalar ? Shape() : Shape{found->second.element_count()});
    }

    std::vector<std::string> gradient_names;
    const std::vector<Tensor> results = RunTraced(
        {golden.inputs.at("x"), golden.inputs.at("cotangent")}, variables,
        [&](absl::Span<const Value> values) {
          const Value x = values[0];
          const Value y = (*layer)(x, kTraining);
          const Value total = Sum(y * values[1]);
          std::vector<Value> outputs = {y};
          if (IsFloating(x.dtype())) {
            gradient_names.push_back("grad_x");
            outputs.push_back(DenseGradient(Gradients(total, {x})[0], x));
          }
          for (const Weight& weight : layer->weights()) {
            if (!weight.trainable()) continue;
            const std::vector<std::string> names = {weight.name()};
            const Gradient gradient = VariableGradients(total, names)[0];
            gradient_names.push_back(
                "grad_" + weight.name().substr(weight.name().find('/') + 1));
            outputs.push_back(DenseGradient(
                gradient, ReadVariable(*x.builder(), weight.handle())));
          }
          return outputs;
        });
    EXPECT_EQ(DescribeDifference(results[0], golden.outputs.at("y"), 5e-6), "");
    for (size_t i = 0; i < gradient_names.size(); ++i) {
      EXPECT_EQ(DescribeDifference(results[i + 1],
                                   golden.outputs.at(gradient_names[i]), 1e-5),
                "")
          << gradient_names[i];
    }
  }
}

}  // namespace
}  // namespace muster
