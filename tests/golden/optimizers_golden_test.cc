#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
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

LearningRateOption ScheduleFrom(const Json& config) {
  if (config.is_number()) return config.get<double>();
  const std::string kind = config.at("class_name");
  if (kind == "PiecewiseConstantDecay") {
    return PiecewiseConstantDecay(
        {.boundaries = config.at("boundaries"), .values = config.at("values")});
  }
  const double initial = config.at("initial_learning_rate");
  const int64_t steps = config.at("decay_steps");
  if (kind == "ExponentialDecay") {
    return ExponentialDecay({.initial_learning_rate = initial,
                             .decay_steps = steps,
                             .decay_rate = config.at("decay_rate"),
                             .staircase = config.at("staircase")});
  }
  if (kind == "InverseTimeDecay") {
    return InverseTimeDecay({.initial_learning_rate = initial,
                             .decay_steps = steps,
                             .decay_rate = config.at("decay_rate"),
                             .staircase = config.at("staircase")});
  }
  if (kind == "PolynomialDecay") {
    return PolynomialDecay({.initial_learning_rate = initial,
                            .decay_steps = steps,
                            .end_learning_rate = config.at("end_learning_rate"),
                            .power = config.at("power"),
                            .cycle = config.at("cycle")});
  }
  EXPECT_EQ(kind, "CosineDecay");
  const Json& target = config.at("warmup_target");
  return CosineDecay(
      {.initial_learning_rate = initial,
       .decay_steps = steps,
       .alpha = config.at("alpha"),
       .warmup_target = target.is_null() ? 0 : target.get<double>(),
       .warmup_steps = config.at("warmup_steps")});
}

proto::Optimizer OptimizerFrom(const Json& config) {
  const std::string kind = config.at("class_name");
  const LearningRateOption rate = ScheduleFrom(config.at("learning_rate"));
  const Json& decay = config.at("weight_decay");
  const double weight_decay = decay.is_null() ? 0 : decay.get<double>();
  if (kind == "SGD") {
    return Sgd({.learning_rate = rate,
                .momentum = config.at("momentum"),
                .nesterov = config.at("nesterov"),
                .weight_decay = weight_decay});
  }
  if (kind == "Adam" || kind == "AdamW") {
    return Adam({.learning_rate = rate,
                 .beta_1 = config.at("beta_1"),
                 .beta_2 = config.at("beta_2"),
                 .epsilon = config.at("epsilon"),
                 .amsgrad = config.at("amsgrad"),
                 .weight_decay = weight_decay});
  }
  if (kind == "Adagrad") {
    return Adagrad(
        {.learning_rate = rate,
         .initial_accumulator_value = config.at("initial_accumulator_value"),
         .epsilon = config.at("epsilon")});
  }
  if (kind == "RMSprop") {
    return RmsProp({.learning_rate = rate,
                    .rho = config.at("rho"),
                    .momentum = config.at("momentum"),
                    .epsilon = config.at("epsilon"),
                    .centered = config.at("centered")});
  }
  EXPECT_EQ(kind, "Ftrl");
  return Ftrl(
      {.learning_rate = rate,
       .learning_rate_power = config.at("learning_rate_power"),
       .initial_accumulator_value = config.at("initial_accumulator_value"),
       .l1_regularization_strength = config.at("l1_regularization_strength"),
       .l2_regularization_strength = config.at("l2_regularization_strength"),
       .l2_shrinkage_regularization_strength =
           config.at("l2_shrinkage_regularization_strength"),
       .beta = config.at("beta")});
}

// Clipping looks at whole gradients and so comes before the rule.
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

void RunVariable(const GoldenCase& golden, const UpdateRule& rule,
                 const std::string& suffix) {
  Tensor variable = golden.inputs.at("var" + suffix).Clone();
  std::vector<Tensor> slots;
  std::vector<float*> slot_data;
  for (const SlotSpec& slot : rule.slots()) {
    slots.push_back(
        Tensor::Full(DType::kFloat32, variable.shape(), slot.initial_value));
    slot_data.push_back(slots.back().mutable_flat<float>().data());
  }
  for (int64_t step = 0; step < kStepCount; ++step) {
    const Tensor gradient = StepOf(golden.inputs.at("grad" + suffix), step);
    rule.Apply(step, variable.element_count(), gradient.flat<float>().data(),
               variable.mutable_flat<float>().data(),
               absl::MakeConstSpan(slot_data));
    ASSERT_EQ(DescribeDifference(
                  variable, StepOf(golden.outputs.at("var" + suffix), step),
                  kTolerance),
              "")
        << golden.name << ", variable " << suffix << " after step " << step;
  }
}

TEST(OptimizersGolden, EveryRuleIsKerasOverTwentySteps) {
  int case_count = 0;
  for (const GoldenCase& golden : ReadGoldenCases("optimizers.json")) {
    if (ClipsGradients(golden.config)) continue;
    ++case_count;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<UpdateRule> rule,
                         UpdateRule::Create(OptimizerFrom(golden.config)));
    const auto rates = golden.outputs.at("learning_rate").flat<float>();
    for (int64_t step = 0; step < kStepCount; ++step) {
      EXPECT_NEAR(rule->LearningRate(step), rates[step],
                  kTolerance * rates[step])
          << golden.name << ", step " << step;
    }
    RunVariable(golden, *rule, "0");
    RunVariable(golden, *rule, "1");
  }
  EXPECT_EQ(case_count, 25);
}

}  // namespace
}  // namespace muster
