#include "common/compute/optimizers/program_rule.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/compute/programs/program.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The update m' = m + g, w' = w - rate * m' - step, for arrays of a type.
std::string Momentum(absl::string_view array) {
  return absl::StrCat(
      "func.func public @main(%g: ", array, ", %w: ", array, ", %m: ", array,
      ", %step: tensor<i32>, %rate: tensor<f32>) -> (", array, ", ", array,
      ") {\n  %0 = stablehlo.add %m, %g : ", array,
      "\n  %1 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) "
      "-> ",
      array, "\n  %2 = stablehlo.multiply %0, %1 : ", array,
      "\n  %3 = stablehlo.subtract %w, %2 : ", array,
      "\n  %4 = stablehlo.convert %step : (tensor<i32>) -> tensor<f32>",
      "\n  %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> ",
      array, "\n  %6 = stablehlo.subtract %3, %5 : ", array,
      "\n  return %6, %0 : ", array, ", ", array, "\n}");
}

ProgramTypes TypesOf(const Shape& shape) {
  const TensorType array = {DType::kFloat32, shape};
  return {{array, array, array, {DType::kInt32, {}}, {DType::kFloat32, {}}},
          {array, array}};
}

std::string Elementwise() {
  Program program;
  program.name = "Momentum";
  program.types = TypesOf({Shape::kUnknown});
  for (const int64_t count : {8, 4}) {
    program.variants.push_back(
        {TypesOf({count}), Momentum(absl::StrCat("tensor<", count, "xf32>")),
         ""});
  }
  return program.Encode();
}

std::string Whole() {
  Program program;
  program.name = "Momentum";
  program.types = TypesOf({2, 3});
  program.variants.push_back(
      {TypesOf({2, 3}), Momentum("tensor<2x3xf32>"), ""});
  return program.Encode();
}

proto::Optimizer OptimizerOf(const std::vector<std::string>& programs) {
  proto::Optimizer optimizer;
  proto::Optimizer::Program* const program = optimizer.mutable_program();
  program->set_learning_rate(0.5);
  program->add_slots("m");
  program->add_initial_values(1);
  for (const std::string& encoded : programs) program->add_programs(encoded);
  return optimizer;
}

// These tests need a plugin: MUSTER_PJRT_PLUGIN is its path.
class ProgramRuleTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const plugin = std::getenv(internal::kPluginVariable);
    if (plugin == nullptr || *plugin == '\0') {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
  }
};

TEST_F(ProgramRuleTest, UpdatesAnyNumberOfElements) {
  ASSERT_OK_AND_ASSIGN(const auto rule,
                       UpdateRule::Create(OptimizerOf({Elementwise()})));
  EXPECT_FALSE(rule->needs_whole_variables());
  ASSERT_OK(rule->Prepare({DType::kFloat32, {1}}, Place()));
  for (const int64_t count : {1, 4, 5, 8, 9, 29}) {
    std::vector<float> gradient(count);
    for (int64_t i = 0; i < count; ++i) gradient[i] = static_cast<float>(i);
    std::vector<float> variable(count, 10);
    std::vector<float> slot(count, 1);
    rule->Apply(3, count, gradient.data(), variable.data(), {slot.data()});
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(slot[i], 1 + static_cast<float>(i));
      EXPECT_EQ(variable[i], 10 - 0.5f * slot[i] - 3) << i << " of " << count;
    }
  }
}

TEST_F(ProgramRuleTest, UpdatesRows) {
  ASSERT_OK_AND_ASSIGN(const auto rule,
                       UpdateRule::Create(OptimizerOf({Elementwise()})));
  ASSERT_OK(rule->Prepare({DType::kFloat32, {4, 3}}, Place()));
  const std::vector<float> gradients = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> variable(12, 10);
  std::vector<float> slot(12, 0);
  rule->ApplyRows(0, 3, {3, 0, 1}, gradients.data(), variable.data(),
                  {slot.data()});
  EXPECT_THAT(slot, ElementsAre(4, 5, 6, 7, 8, 9, 0, 0, 0, 1, 2, 3));
  EXPECT_EQ(variable[11], 8.5f);
  EXPECT_EQ(variable[6], 10);
}

TEST_F(ProgramRuleTest, AccumulatesAndAverages) {
  proto::Optimizer optimizer = OptimizerOf({Elementwise()});
  optimizer.set_gradient_accumulation_steps(2);
  optimizer.set_use_ema(true);
  ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
  ASSERT_OK(rule->Prepare({DType::kFloat32, {1}}, Place()));
  ASSERT_EQ(rule->slots().size(), 3);
  float w = 10;
  float slots[] = {1, 0, 0};
  for (int64_t step = 0; step < 4; ++step) {
    const float gradient = step % 2 == 0 ? 2 : 4;
    rule->Apply(step, 1, &gradient, &w, {slots, slots + 1, slots + 2});
  }
  // The mean is 3, twice: m = 4, then 7; the second update subtracts 1.
  EXPECT_EQ(w, 10 - 0.5f * 4 - 0.5f * 7 - 1);
}

TEST_F(ProgramRuleTest, AProgramOfAShapeUpdatesVariablesOfThatShape) {
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const UpdateRule> rule,
                       UpdateRule::Create(OptimizerOf({Whole()})));
  EXPECT_TRUE(rule->needs_whole_variables());
  const auto of_variable = UpdateRuleFor(rule, "w", {2, 3});
  const TensorType type = {DType::kFloat32, {2, 3}};
  ASSERT_OK(of_variable->Prepare(type, Place()));
  std::vector<float> variable(6, 10);
  std::vector<float> slot(6, 1);
  const std::vector<float> gradient(6, 1);
  of_variable->Apply(0, 6, gradient.data(), variable.data(), {slot.data()});
  EXPECT_THAT(variable, Each(9));
  EXPECT_THAT(
      UpdateRuleFor(rule, "b", {3})->Prepare({DType::kFloat32, {3}}, Place()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("not exported for a variable float32[3]")));
  EXPECT_THAT(of_variable->Prepare({DType::kFloat64, {2, 3}}, Place()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      of_variable->Prepare(type, {PlaceKind::kDevice, 0}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("on CPUs only")));
}

// step * 0.5
std::string HalfOfStep() {
  Program program;
  program.name = "Warmup";
  program.types = {{{DType::kInt32, {}}}, {{DType::kFloat32, {}}}};
  program.variants.push_back(
      {program.types,
       "func.func public @main(%step: tensor<i32>) -> tensor<f32> {\n"
       "  %0 = stablehlo.convert %step : (tensor<i32>) -> tensor<f32>\n"
       "  %1 = stablehlo.constant dense<0.5> : tensor<f32>\n"
       "  %2 = stablehlo.multiply %0, %1 : tensor<f32>\n"
       "  return %2 : tensor<f32>\n}",
       ""});
  return program.Encode();
}

TEST_F(ProgramRuleTest, SchedulesCanBePrograms) {
  proto::Optimizer optimizer;
  optimizer.mutable_sgd();
  optimizer.mutable_learning_rate_schedule()->mutable_program()->set_program(
      HalfOfStep());
  ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
  EXPECT_EQ(rule->LearningRate(0), 0);
  EXPECT_EQ(rule->LearningRate(3), 1.5);
  EXPECT_EQ(rule->LearningRate(1), 0.5);
  ASSERT_OK_AND_ASSIGN(const std::string json, KerasConfigOf(optimizer));
  ASSERT_OK_AND_ASSIGN(const proto::Optimizer read,
                       OptimizerFromKerasConfig(json));
  EXPECT_EQ(read.learning_rate_schedule().program().program(), HalfOfStep());

  optimizer.mutable_learning_rate_schedule()->mutable_program()->set_program(
      Whole());
  EXPECT_THAT(UpdateRule::Create(optimizer),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("program Momentum is no schedule")));
}

TEST(ProgramRuleMessageTest, SurvivesAFileOfKeras) {
  proto::Optimizer optimizer = OptimizerOf({Elementwise()});
  optimizer.mutable_program()->add_slots("copy");
  optimizer.mutable_program()->add_initial_values(0);
  optimizer.mutable_program()->add_slots_starting_as_variable("copy");
  ASSERT_OK_AND_ASSIGN(const std::string json, KerasConfigOf(optimizer));
  EXPECT_THAT(json, HasSubstr("\"module\":\"muster.programs\""));
  ASSERT_OK_AND_ASSIGN(const proto::Optimizer read,
                       OptimizerFromKerasConfig(json));
  EXPECT_EQ(read.program().SerializeAsString(),
            optimizer.program().SerializeAsString());
}

TEST(ProgramRuleMessageTest, RefusesWhatContradictsItself) {
  const auto expect_error = [](const proto::Optimizer& optimizer,
                               absl::string_view message) {
    EXPECT_THAT(UpdateRule::Create(optimizer),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("program: "), HasSubstr(message))));
  };
  expect_error(OptimizerOf({}), "there are no programs");
  expect_error(OptimizerOf({"{}"}), "name");
  proto::Optimizer optimizer = OptimizerOf({Elementwise()});
  optimizer.mutable_program()->add_slots("second");
  expect_error(optimizer, "there are 1 initial_values for 2 slots");
  optimizer.mutable_program()->add_initial_values(0);
  expect_error(optimizer,
               "program Momentum is no update of a variable with 2 slots");
  optimizer = OptimizerOf({Elementwise()});
  optimizer.mutable_program()->add_slots_starting_as_variable("x");
  expect_error(optimizer, "x, which is not among the slots");
  expect_error(OptimizerOf({Whole(), Elementwise()}), "expected no other");
}

}  // namespace
}  // namespace muster
