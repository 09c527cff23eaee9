#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/optimizer.pb.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int64_t kStepCount = 20;
constexpr double kTolerance = 1e-6;

// Configs in golden files have the arguments next to class_name; Keras stores
// them in "config".
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
  if (rule.ChangesAllRows(step)) {
    rule.FinishRows(step, variable->element_count(), values,
                    absl::MakeConstSpan(slots));
  }
}

void RunVariable(const GoldenCase& golden, const UpdateRule& rule,
                 const std::string& suffix, bool by_rows) {
  Tensor variable = golden.inputs.at("var" + suffix).Clone();
  std::vector<Tensor> slots;
  std::vector<float*> slot_data;
  for (const SlotSpec& slot : rule.slots()) {
    slots.push_back(slot.starts_as_variable
                        ? variable.Clone()
                        : Tensor::Full(DType::kFloat32,
                                       slot.shape.value_or(variable.shape()),
                                       slot.initial_value));
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
    ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const UpdateRule> rule,
                         UpdateRule::Create(optimizer));
    const auto rates = golden.outputs.at("learning_rate").flat<float>();
    for (int64_t step = 0; step < kStepCount; ++step) {
      EXPECT_NEAR(rule->LearningRate(step), rates[step],
                  kTolerance * rates[step])
          << golden.name << ", step " << step;
    }
    for (const bool by_rows : {false, true}) {
      if (by_rows && rule->needs_whole_variables()) continue;
      for (const char* const suffix : {"0", "1"}) {
        const std::string name = absl::StrCat("var", suffix);
        RunVariable(golden,
                    *UpdateRuleFor(rule, name, golden.inputs.at(name).shape()),
                    suffix, by_rows);
      }
    }
  }
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    EXPECT_TRUE(seen.contains(std::string(kind->keras_class)))
        << "tests/golden/cases/optimizers.py has no case for "
        << kind->keras_class;
  }
}

double NumberOr0(const Json& value) {
  return value.is_null() ? 0 : value.get<double>();
}

GradientClipping ClippingOf(const Json& config) {
  return {.clipvalue = NumberOr0(config.at("clipvalue")),
          .clipnorm = NumberOr0(config.at("clipnorm")),
          .global_clipnorm = NumberOr0(config.at("global_clipnorm"))};
}

// A gradient as sparse rows: all rows, the last one first.
struct Rows {
  explicit Rows(const Tensor& gradient)
      : values(gradient.Clone()),
        indices(DType::kInt64, {gradient.shape().dim(0)}) {
    const int64_t count = gradient.shape().dim(0);
    const int64_t elements = gradient.element_count() / count;
    for (int64_t row = 0; row < count; ++row) {
      indices.mutable_flat<int64_t>()[row] = count - 1 - row;
      const auto from = gradient.flat<float>().subspan(
          (count - 1 - row) * elements, elements);
      std::copy(from.begin(), from.end(),
                values.mutable_flat<float>().begin() + row * elements);
    }
  }
  Tensor values;
  Tensor indices;
};

void RunStore(const GoldenCase& golden, bool by_rows) {
  SCOPED_TRACE(golden.name);
  ASSERT_OK_AND_ASSIGN(const proto::Optimizer optimizer,
                       OptimizerFromKerasConfig(Nested(golden.config).dump()));
  LocalVariableStore store;
  const GradientClipping clipping = ClippingOf(golden.config);
  std::vector<VariableUse> uses;
  for (const std::string suffix : {"0", "1"}) {
    const Tensor& start = golden.inputs.at("var" + suffix);
    proto::VariableSpec spec;
    spec.set_name("var" + suffix);
    spec.set_dtype(proto::DT_FLOAT);
    for (const int64_t dim : start.shape().dims()) {
      spec.mutable_shape()->add_dim(dim);
    }
    spec.set_trainable(true);
    ASSERT_OK(store.Create(spec));
    ASSERT_OK(store.Assign("var" + suffix, start));
    uses.push_back(
        {.name = "var" + suffix,
         .is_updated = true,
         .updates = {{.kind = by_rows ? UpdateKind::kApplySparseGradient
                                      : UpdateKind::kApplyGradient,
                      .clipping = clipping}}});
  }
  ASSERT_OK(store.SetOptimizer(optimizer));
  ASSERT_OK_AND_ASSIGN(const auto session, store.OpenSession(uses));
  for (int64_t step = 0; step < kStepCount; ++step) {
    ASSERT_OK(session->Begin(step + 1));
    for (int i = 0; i < 2; ++i) {
      const Tensor gradient =
          StepOf(golden.inputs.at("grad" + std::to_string(i)), step);
      const Rows rows(gradient);
      ASSERT_OK(session->Update(i, uses[i].updates[0].kind,
                                by_rows ? rows.values : gradient,
                                by_rows ? rows.indices : Tensor()));
    }
    ASSERT_OK(session->Commit());
    for (const std::string suffix : {"0", "1"}) {
      ASSERT_OK_AND_ASSIGN(const Tensor value, store.Read("var" + suffix));
      ASSERT_EQ(DescribeDifference(
                    value, StepOf(golden.outputs.at("var" + suffix), step),
                    kTolerance),
                "")
          << "variable " << suffix << " after step " << step;
    }
  }
  ASSERT_OK(store.AssignAverages());
  for (const std::string suffix : {"0", "1"}) {
    ASSERT_OK_AND_ASSIGN(const Tensor value, store.Read("var" + suffix));
    EXPECT_EQ(DescribeDifference(value, golden.outputs.at("final" + suffix),
                                 kTolerance),
              "")
        << "variable " << suffix << " at the end";
  }
}

// Includes clipping, accumulation and averages, and the values at the end of
// fit().
TEST(OptimizersGolden, VariablesMatchKerasOverTwentySteps) {
  for (const GoldenCase& golden : ReadGoldenCases("optimizers.json")) {
    for (const bool by_rows : {false, true}) RunStore(golden, by_rows);
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

// The case with the name of the optimizer has the defaults of Keras.
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
