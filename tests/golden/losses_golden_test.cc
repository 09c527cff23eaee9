#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
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
#include "tests/golden/keras_config_reader.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

Value ActivatedAs(const nlohmann::json& config, Value x) {
  if (!config.contains("activation")) return x;
  if (config.at("activation") == "sigmoid") {
    return Activate(Activation::kSigmoid, x);
  }
  MUSTER_CHECK(config.at("activation") == "softmax");
  return Activate(Activation::kSoftmax, x);
}

TEST(LossesGoldenTest, MatchKerasWithTheirGradients) {
  absl::flat_hash_set<std::string> compared;
  for (const GoldenCase& golden : ReadGoldenCases("losses.json")) {
    SCOPED_TRACE(golden.name);
    const LossKind* const kind = FindKerasKind(kLossKinds, golden.config);
    ASSERT_NE(kind, nullptr) << "kLossKinds lacks " << golden.config;
    compared.emplace(kind->name);
    KerasConfigReader reader(golden.config);
    const Loss loss = kind->make(reader);
    EXPECT_EQ(loss.name(), kind->name);
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
  for (const LossKind& kind : kLossKinds) {
    EXPECT_TRUE(compared.contains(kind.name))
        << "losses.json has no case for " << kind.name;
  }
}

}  // namespace
}  // namespace muster
