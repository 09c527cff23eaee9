#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int64_t kStepCount = 20;
constexpr double kTolerance = 1e-6;

// Configs in golden files have the arguments next to class_name; Keras has them
// in "config".
Json Nested(Json flat) {
  if (!flat.is_object()) return flat;
  const Json class_name = flat.at("class_name");
  flat.erase("class_name");
  if (flat.contains("learning_rate")) {
    flat["learning_rate"] = Nested(flat["learning_rate"]);
  }
  return {{"class_name", class_name}, {"config", flat}};
}

// Clipping applies to whole gradients, before the rule.
bool ClipsGradients(const Json& config) {
  return !config.at("clipnorm").is_null() ||
         !config.at("clipvalue").is_null() ||
         !config.at("global_clipnorm").is_null();
}

Tensor StepOf(const Tensor& all, int64_t step) {
  Shape shape = all.shape();
  shape.RemoveDim(0);
  return all.SliceRows(step, step + 1).Reshaped(shape);
}

// Applies a dense update, or an update of all rows in reverse order.
void ApplyStep(const UpdateRule& rule, int64_t step, const Tensor& gradient,
               bool by_rows, Tensor* variable,
               const std::vector<float*>& slots) {
  float* const values = variable->mutable_flat<float>().data();
  if (!by_rows) {
    rule.Apply(step, variable->element_count(), gradient.flat<float>().data(),
               values, absl::MakeConstSpan(slots));
    return;
  }
  const int64_t row_count = variable->shape().dim(0);
  const int64_t row_elements = variable->element_count() / row_count;
  std::vector<int64_t> rows;
  std::vector<float> gradients;
  for (int64_t row = row_count - 1; row >= 0; --row) {
    rows.push_back(row);
    const auto of_row =
        gradient.flat<float>().subspan(row * row_elements, row_elements);
    gradients.insert(gradients.end(), of_row.begin(), of_row.end());
  }
  rule.ApplyRows(step, row_elements, rows, gradients.data(), values,
                 absl::MakeConstSpan(slots));
}

void RunVariable(const GoldenCase& golden, const UpdateRule& rule,
                 const std::string& suffix, bool by_rows) {
  Tensor variable = golden.inputs.at("var" + suffix).Clone();
  std::vector<Tensor> slots;
  std::vector<float*> slot_data;
  for (const SlotSpec& slot : rule.slots()) {
    slots.push_back(
        Tensor::Full(DType::kFloat32, variable.shape(), slot.initial_value));
    slot_data.push_back(slots.back().mutable_flat<float>().data());
  }
  for (int64_t step = 0; step < kStepCount; ++step) {
    ApplyStep(rule, step, StepOf(golden.inputs.at("grad" + suffix), step),
              by_rows, &variable, slot_data);
    ASSERT_EQ(DescribeDifference(
                  variable, StepOf(golden.outputs.at("var" + suffix), step),
                  kTolerance),
              "")
        << golden.name << ", variable " << suffix << " after step " << step;
  }
}

TEST(OptimizersGolden, EveryRuleMatchesKerasOverTwentySteps) {
  std::set<std::string> seen;
  for (const GoldenCase& golden : ReadGoldenCases("optimizers.json")) {
    if (ClipsGradients(golden.config)) continue;
    seen.insert(golden.config.at("class_name"));
    ASSERT_OK_AND_ASSIGN(
        const proto::Optimizer optimizer,
        OptimizerFromKerasConfig(Nested(golden.config).dump()));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<UpdateRule> rule,
                         UpdateRule::Create(optimizer));
    const auto rates = golden.outputs.at("learning_rate").flat<float>();
    for (int64_t step = 0; step < kStepCount; ++step) {
      EXPECT_NEAR(rule->LearningRate(step), rates[step],
                  kTolerance * rates[step])
          << golden.name << ", step " << step;
    }
    for (const bool by_rows : {false, true}) {
      RunVariable(golden, *rule, "0", by_rows);
      RunVariable(golden, *rule, "1", by_rows);
    }
  }
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    EXPECT_TRUE(seen.contains(std::string(kind->keras_class)))
        << "tests/golden/cases/optimizers.py has no case for "
        << kind->keras_class;
  }
}

TEST(OptimizersGolden, ConfigsOfKerasRoundTrip) {
  for (const GoldenCase& golden : ReadGoldenCases("optimizers.json")) {
    const Json keras = Nested(golden.config);
    ASSERT_OK_AND_ASSIGN(const proto::Optimizer optimizer,
                         OptimizerFromKerasConfig(keras.dump()));
    ASSERT_OK_AND_ASSIGN(const std::string text, KerasConfigOf(optimizer));
    const Json ours = Json::parse(text);
    EXPECT_EQ(ours.at("class_name"), keras.at("class_name"));
    for (const auto& [name, value] : ours.at("config").items()) {
      const Json& wanted = keras.at("config").at(name);
      if (value.is_object()) {
        EXPECT_EQ(value.at("class_name"), wanted.at("class_name"));
        EXPECT_EQ(value.at("config"), wanted.at("config")) << golden.name;
      } else {
        EXPECT_EQ(value, wanted) << golden.name << ": " << name;
      }
    }
  }
}

// The case named like the optimizer has the defaults of Keras.
TEST(OptimizersGolden, DefaultsMatchKeras) {
  for (const GoldenCase& golden : ReadGoldenCases("optimizers.json")) {
    for (const OptimizerKind* const kind : kOptimizerKinds) {
      if (OptimizerName(kind->defaults().message()) != golden.name) continue;
      ASSERT_OK_AND_ASSIGN(const std::string text,
                           KerasConfigOf(kind->defaults().message()));
      for (const auto& [name, value] : Json::parse(text).at("config").items()) {
        EXPECT_EQ(value, golden.config.at(name)) << golden.name << ": " << name;
      }
    }
  }
}

}  // namespace
}  // namespace muster
