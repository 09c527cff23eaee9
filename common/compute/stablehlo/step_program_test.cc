#include "common/compute/stablehlo/step_program.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const TensorType kType = {DType::kFloat32, {3}};

// A step whose updates of the variable "w" are those of `update`.
template <typename Update>
Graph StepWith(const Update& update) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {DType::kFloat32, {4, 3}});
  update(builder, x, VariableHandle{"w", kType});
  return std::move(builder).Build().value();
}

StepVariable Variable(const Optimizer& optimizer = Sgd()) {
  proto::VariableSpec spec;
  spec.set_name("w");
  StepVariable variable = {.type = kType, .is_updated = true};
  variable.spec = std::make_shared<const proto::VariableSpec>(spec);
  const auto rule = UpdateRule::Create(optimizer).value();
  rule->AddPasses(0, DType::kFloat32, &variable.rule.passes);
  variable.slots.assign(rule->slots().size(), kType);
  variable.rule.gradients_per_update = rule->gradients_per_update();
  variable.rule.accumulator_slot = rule->accumulator_slot();
  return variable;
}

Graph Mean() {
  return StepWith([](GraphBuilder&, Value x, const VariableHandle& w) {
    SetLossDenominator(Sum(x, {0, 1}));
    ApplyGradient(w, Sum(x, {0}));
  });
}

int CountOf(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

constexpr char kAllReduce[] = "\"stablehlo.all_reduce\"";

TEST(StepProgramTest, ReducesGradientsAndTheirWeight) {
  ASSERT_OK_AND_ASSIGN(
      const std::string module,
      MakeStepProgram(Mean(), {Variable()}, {.replica_count = 2}));
  EXPECT_EQ(CountOf(module, kAllReduce), 2);
  EXPECT_THAT(module, HasSubstr("mhlo.num_replicas = 2"));
}

TEST(StepProgramTest, ReducesNothingWithoutOtherReplicasOrParts) {
  ASSERT_OK_AND_ASSIGN(const std::string alone,
                       MakeStepProgram(Mean(), {Variable()}, {}));
  EXPECT_EQ(CountOf(alone, kAllReduce), 0);
  ASSERT_OK_AND_ASSIGN(
      const std::string whole,
      MakeStepProgram(Mean(), {Variable()},
                      {.replica_count = 2, .divides_batch = false}));
  EXPECT_EQ(CountOf(whole, kAllReduce), 0);
}

TEST(StepProgramTest, DonatesValueAndSlots) {
  ASSERT_OK_AND_ASSIGN(const std::string module,
                       MakeStepProgram(Mean(), {Variable(Adam())}, {}));
  for (const char* result : {"= 0 : i32", "= 1 : i32", "= 2 : i32"}) {
    EXPECT_THAT(module,
                HasSubstr(std::string("{tf.aliasing_output ") + result));
  }
  EXPECT_THAT(module, Not(HasSubstr("tf.aliasing_output = 3")));
}

TEST(StepProgramTest, CoefficientsAreArguments) {
  const StepVariable slow = Variable(Sgd({.learning_rate = 0.1}));
  const StepVariable fast = Variable(Sgd({.learning_rate = 0.7}));
  ASSERT_OK_AND_ASSIGN(const std::string a,
                       MakeStepProgram(Mean(), {slow}, {}));
  ASSERT_OK_AND_ASSIGN(const std::string b,
                       MakeStepProgram(Mean(), {fast}, {}));
  EXPECT_EQ(a, b);
  EXPECT_EQ(PassStructure(slow.rule.passes), PassStructure(fast.rule.passes));
  EXPECT_NE(PassCoefficients(slow.rule.passes),
            PassCoefficients(fast.rule.passes));
}

TEST(StepProgramTest, SeveralStepsAreALoop) {
  ASSERT_OK_AND_ASSIGN(
      const std::string module,
      MakeStepProgram(Mean(), {Variable()}, {.step_count = 5}));
  EXPECT_THAT(module, AllOf(HasSubstr("\"stablehlo.while\""),
                            HasSubstr("%arg0: tensor<5x4x3xf32>")));
}

TEST(StepProgramTest, RefusalsNameTheVariable) {
  const auto refusal = [](const Graph& graph, const StepVariable& variable) {
    return MakeStepProgram(graph, {variable}, {}).status();
  };
  const auto named = [](absl::string_view reason) {
    return StatusIs(absl::StatusCode::kUnimplemented,
                    AllOf(HasSubstr("\"w\""), HasSubstr(std::string(reason))));
  };
  EXPECT_THAT(refusal(Mean(), Variable(Lion())), named("\"lion\""));
  StepVariable constrained = Variable();
  proto::VariableSpec spec = *constrained.spec;
  spec.mutable_constraint()->mutable_non_neg();
  constrained.spec = std::make_shared<const proto::VariableSpec>(spec);
  EXPECT_THAT(refusal(Mean(), constrained), named("constraints"));
  StepVariable wide = Variable();
  wide.type.dtype = DType::kFloat64;
  EXPECT_THAT(refusal(Mean(), wide), named("float64"));
  const Graph clipped =
      StepWith([](GraphBuilder&, Value x, const VariableHandle& w) {
        ApplyGradient(w, Sum(x, {0}), {.clipnorm = 1});
      });
  EXPECT_THAT(
      refusal(clipped, Variable(Sgd({}, {.gradient_accumulation_steps = 2}))),
      named("clipping"));
  const Graph scattered =
      StepWith([](GraphBuilder& builder, Value x, const VariableHandle& w) {
        const Value rows =
            builder.Constant(Tensor::FromValues<int64_t>({1}, {0}));
        ScatterAddVariable(w, rows, Slice(Sum(x, {0}), {0}, {1}));
      });
  EXPECT_THAT(refusal(scattered, Variable()), named("ScatterAddVariable"));
}

TEST(StepProgramTest, AssignmentOfReplicasNeedsAnAggregation) {
  const Graph graph =
      StepWith([](GraphBuilder&, Value x, const VariableHandle& w) {
        AssignVariable(w, Sum(x, {0}));
      });
  EXPECT_THAT(MakeStepProgram(graph, {Variable()}, {.replica_count = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("set its aggregation")));
}

}  // namespace
}  // namespace muster
