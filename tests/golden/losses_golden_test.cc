#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/check.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

Reduction ToReduction(const std::string& name) {
  if (name == "sum") return Reduction::kSum;
  if (name == "none") return Reduction::kNone;
  MUSTER_CHECK(name == "sum_over_batch_size");
  return Reduction::kSumOverBatchSize;
}

Loss MakeLoss(const nlohmann::json& config) {
  const std::string name = config.at("class_name");
  const Reduction reduction = ToReduction(config.at("reduction"));
  if (name == "MeanSquaredError") return MeanSquaredError({reduction});
  if (name == "MeanAbsoluteError") return MeanAbsoluteError({reduction});
  const bool from_logits = config.at("from_logits");
  if (name == "SparseCategoricalCrossentropy") {
    SparseCrossentropyOptions options{.from_logits = from_logits,
                                      .reduction = reduction};
    const nlohmann::json& ignored = config.at("ignore_class");
    if (!ignored.is_null()) options.ignore_class = ignored.get<int64_t>();
    return SparseCategoricalCrossentropy(options);
  }
  const CrossentropyOptions options{
      .from_logits = from_logits,
      .label_smoothing = config.at("label_smoothing"),
      .reduction = reduction};
  if (name == "BinaryCrossentropy") return BinaryCrossentropy(options);
  MUSTER_CHECK(name == "CategoricalCrossentropy");
  return CategoricalCrossentropy(options);
}

Value ActivatedAs(const nlohmann::json& config, Value x) {
  if (!config.contains("activation")) return x;
  if (config.at("activation") == "sigmoid") {
    return Activate(Activation::kSigmoid, x);
  }
  MUSTER_CHECK(config.at("activation") == "softmax");
  return Activate(Activation::kSoftmax, x);
}

TEST(LossesGoldenTest, MatchKerasWithTheirGradients) {
  for (const GoldenCase& golden : ReadGoldenCases("losses.json")) {
    SCOPED_TRACE(golden.name);
    const Loss loss = MakeLoss(golden.config);
    std::vector<Tensor> arguments = {golden.inputs.at("y_true"),
                                     golden.inputs.at("y_pred")};
    const bool is_weighted = golden.inputs.count("sample_weight") > 0;
    if (is_weighted) arguments.push_back(golden.inputs.at("sample_weight"));

    const std::vector<Tensor> results =
        RunTraced(arguments, {}, [&](absl::Span<const Value> values) {
          const Value y_pred = ActivatedAs(golden.config, values[1]);
          const Value value = is_weighted ? loss(values[0], y_pred, values[2])
                                          : loss(values[0], y_pred);
          const std::vector<Gradient> gradients = Gradients(value, {values[1]});
          return std::vector<Value>{value,
                                    DenseGradient(gradients[0], values[1])};
        });
    EXPECT_EQ(DescribeDifference(results[0], golden.outputs.at("value"), 2e-6),
              "");
    EXPECT_EQ(
        DescribeDifference(results[1], golden.outputs.at("grad_y_pred"), 2e-6),
        "");
  }
}

}  // namespace
}  // namespace muster
