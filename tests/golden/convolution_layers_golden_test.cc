#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/weight.h"
#include "common/learn/nn/window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/layer_case.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

using nlohmann::json;

// Parses 3 or [3, 1].
Size2D ToSize(const json& config, const char* key, int64_t absent) {
  if (!config.contains(key)) return absent;
  const json& value = config.at(key);
  if (value.is_number()) return value.get<int64_t>();
  return {value[0].get<int64_t>(), value[1].get<int64_t>()};
}

Padding ToPadding(const json& config) {
  return config.value("padding", "valid") == "same" ? Padding::kSame
                                                    : Padding::kValid;
}

Activation ToActivation(const json& config) {
  const std::string name = config.value("activation", "linear");
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  MUSTER_CHECK(name == "linear");
  return Activation::kLinear;
}

LayerPtr MakeConvolution(const std::string& kind, const json& config) {
  const Size2D size = ToSize(config, "kernel_size", 0);
  const Size2D strides = ToSize(config, "strides", 1);
  const Size2D dilation = ToSize(config, "dilation_rate", 1);
  const Activation activation = ToActivation(config);
  const bool use_bias = config.value("use_bias", true);
  if (kind == "Conv2D") {
    return Conv2D(config.at("filters"), size,
                  {.strides = strides,
                   .padding = ToPadding(config),
                   .dilation_rate = dilation,
                   .groups = config.value("groups", 1),
                   .activation = activation,
                   .use_bias = use_bias});
  }
  if (kind == "Conv1D") {
    return Conv1D(config.at("filters"), size.height,
                  {.strides = strides.height,
                   .padding = ToPadding(config),
                   .dilation_rate = dilation.height,
                   .groups = config.value("groups", 1),
                   .activation = activation,
                   .use_bias = use_bias});
  }
  if (kind == "DepthwiseConv2D") {
    return DepthwiseConv2D(
        size, {.strides = strides,
               .padding = ToPadding(config),
               .depth_multiplier = config.value("depth_multiplier", 1),
               .dilation_rate = dilation,
               .activation = activation,
               .use_bias = use_bias});
  }
  MUSTER_CHECK(kind == "SeparableConv2D");
  return SeparableConv2D(
      config.at("filters"), size,
      {.strides = strides,
       .padding = ToPadding(config),
       .dilation_rate = dilation,
       .depth_multiplier = config.value("depth_multiplier", 1),
       .activation = activation,
       .use_bias = use_bias});
}

LayerPtr MakeBatchNormalization(const json& config, bool synchronized) {
  const LayerPtr layer =
      BatchNormalization({.momentum = config.value("momentum", 0.99),
                          .epsilon = config.value("epsilon", 1e-3),
                          .center = config.value("center", true),
                          .scale = config.value("scale", true),
                          .synchronized = synchronized});
  layer->set_trainable(config.value("trainable", true));
  return layer;
}

LayerPtr MakePooling(const std::string& kind, const json& config) {
  const bool keepdims = config.value("keepdims", false);
  if (kind == "GlobalMaxPooling2D") {
    return GlobalMaxPooling2D({.keepdims = keepdims});
  }
  if (kind == "GlobalAveragePooling2D") {
    return GlobalAveragePooling2D({.keepdims = keepdims});
  }
  const Size2D size = ToSize(config, "pool_size", 2);
  Pooling2DOptions options{.padding = ToPadding(config)};
  if (config.contains("strides")) {
    options.strides = ToSize(config, "strides", 0);
  }
  return kind == "MaxPooling2D" ? MaxPooling2D(size, options)
                                : AveragePooling2D(size, options);
}

LayerPtr MakeMerge(const std::string& kind, const json& config) {
  if (kind == "Concatenate") {
    return Concatenate({.axis = config.value("axis", -1)});
  }
  static constexpr MergeFunction kFunctions[] = {
      MergeFunction::kAdd,      MergeFunction::kSubtract,
      MergeFunction::kMultiply, MergeFunction::kAverage,
      MergeFunction::kMaximum,  MergeFunction::kMinimum};
  for (const MergeFunction function : kFunctions) {
    const LayerPtr layer = MakeLayer<MergeLayer>(function, MergeOptions());
    if (layer->kind() == kind) return layer;
  }
  return nullptr;
}

LayerPtr MakeElementwise(const std::string& kind, const json& config) {
  if (kind == "ReLU") {
    ReLUOptions options{.negative_slope = config.value("negative_slope", 0.0),
                        .threshold = config.value("threshold", 0.0)};
    if (config.contains("max_value")) options.max_value = config["max_value"];
    return ReLU(options);
  }
  if (kind == "ZeroPadding2D") {
    const json& padding = config.at("padding");
    if (padding.is_number()) return ZeroPadding2D(padding.get<int64_t>());
    if (padding[0].is_number()) {
      return ZeroPadding2D(
          {padding[0].get<int64_t>(), padding[1].get<int64_t>()});
    }
    using Pair = std::array<int64_t, 2>;
    return ZeroPadding2D({padding[0].get<Pair>(), padding[1].get<Pair>()});
  }
  if (kind == "Reshape") {
    return Reshape(config.at("target_shape").get<std::vector<int64_t>>());
  }
  MUSTER_CHECK(kind == "Permute");
  return Permute(config.at("dims").get<std::vector<int64_t>>());
}

LayerPtr MakeGoldenLayer(const json& config) {
  const std::string kind = config.at("class_name");
  if (kind.find("Conv") != std::string::npos) {
    return MakeConvolution(kind, config);
  }
  if (kind.find("Pooling") != std::string::npos) {
    return MakePooling(kind, config);
  }
  if (kind == "BatchNormalization") {
    return MakeBatchNormalization(config, false);
  }
  if (LayerPtr merge = MakeMerge(kind, config); merge != nullptr) return merge;
  return MakeElementwise(kind, config);
}

// Returns the moving statistics after one step of training.
std::map<std::string, Tensor> Moved(const GoldenCase& golden,
                                    const LayerPtr& layer, const Tensor& x) {
  layer->SetPath("layer");
  std::map<std::string, Tensor> variables;
  for (const auto& [name, tensor] : golden.inputs) {
    variables[absl::StrCat("layer/", name)] = tensor;
  }
  std::vector<std::string> names;
  const std::vector<Tensor> results =
      RunTraced({x}, variables, [&](absl::Span<const Value> values) {
        std::vector<Value> outputs;
        const Value y = (*layer)(values[0], kTraining);
        for (const Weight& weight : layer->weights()) {
          names.push_back(weight.name().substr(weight.name().find('/') + 1));
          outputs.push_back(ReadVariable(*y.builder(), weight.handle()));
        }
        return outputs;
      });
  std::map<std::string, Tensor> moved;
  for (size_t i = 0; i < names.size(); ++i) moved[names[i]] = results[i];
  return moved;
}

void ExpectMovesAsInKeras(const GoldenCase& golden, const LayerPtr& layer) {
  const std::map<std::string, Tensor> moved =
      Moved(golden, layer, golden.inputs.at("x"));
  for (const char* name : {"moving_mean", "moving_variance"}) {
    EXPECT_EQ(DescribeDifference(
                  moved.at(name),
                  golden.outputs.at(absl::StrCat("after_", name)), 1e-5),
              "")
        << name;
  }
}

// Removes the outputs that are not outputs of the layer.
GoldenCase WithoutMoved(GoldenCase golden) {
  golden.outputs.erase("after_moving_mean");
  golden.outputs.erase("after_moving_variance");
  return golden;
}

TEST(ConvolutionLayersGoldenTest, MatchKerasWithTheirGradients) {
  for (const GoldenCase& golden : ReadGoldenCases("convolution_layers.json")) {
    SCOPED_TRACE(golden.name);
    ExpectLayerMatches(WithoutMoved(golden), MakeGoldenLayer(golden.config),
                       2e-5);
  }
}

TEST(ConvolutionLayersGoldenTest, MovingStatisticsMatchKeras) {
  for (const GoldenCase& golden : ReadGoldenCases("convolution_layers.json")) {
    if (golden.config.at("class_name") != "BatchNormalization") continue;
    SCOPED_TRACE(golden.name);
    for (const bool synchronized : {false, true}) {
      ExpectMovesAsInKeras(golden,
                           MakeBatchNormalization(golden.config, synchronized));
    }
    // With one replica, synchronized statistics are the same.
    ExpectLayerMatches(WithoutMoved(golden),
                       MakeBatchNormalization(golden.config, true), 2e-5);
  }
}

TEST(ConvolutionLayersGoldenTest, AnEmptyBatchDoesNotChangeTheStatistics) {
  for (const GoldenCase& golden : ReadGoldenCases("convolution_layers.json")) {
    if (golden.name != "BatchNormalization.images") continue;
    Shape nothing = golden.inputs.at("x").shape();
    nothing.set_dim(0, 0);
    for (const bool synchronized : {false, true}) {
      const std::map<std::string, Tensor> moved =
          Moved(golden, MakeBatchNormalization(golden.config, synchronized),
                Tensor(DType::kFloat32, nothing));
      for (const auto& [name, tensor] : moved) {
        EXPECT_EQ(DescribeDifference(tensor, golden.inputs.at(name), 0), "")
            << name;
      }
    }
  }
}

}  // namespace
}  // namespace muster
