#include "common/learn/strategy/tpu/tpu_step.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/strategy/tpu/tpu_variable_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DType kF32 = DType::kFloat32;
constexpr int kDevices = 2;

class TpuStepTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
    if (plugin == nullptr || *plugin == '\0') {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
    ASSERT_OK_AND_ASSIGN(
        system_,
        InitializeTpuSystem({.plugin = plugin, .cpu_device_count = kDevices}));
    variables_ = std::make_unique<TpuVariableStore>(system_);
  }

  // Creates the variable "v", a float32 scalar that is 0.
  void CreateVariable(proto::VariableSynchronization synchronization,
                      proto::VariableAggregation aggregation) {
    proto::VariableSpec spec;
    spec.set_name("v");
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_shape();
    spec.mutable_initializer()->mutable_constant();
    spec.set_synchronization(synchronization);
    spec.set_aggregation(aggregation);
    ASSERT_OK(variables_->Create(spec));
  }

  // Makes a step that adds the sum of its batch to "v" and returns that sum.
  absl::StatusOr<std::unique_ptr<TpuStep>> AddingStep() {
    GraphBuilder builder(&BuiltinOps(), "step");
    const muster::Value sum =
        Sum(builder.Parameter("x", {kF32, {Shape::kUnknown}}), {0});
    AssignAddVariable({"v", {kF32, {}}}, sum);
    builder.AddResult(sum);
    return TpuStep::Create(std::move(builder).Build().value(), system_,
                           variables_.get(), TpuStep::Results::kSummed);
  }

  // Runs a step on these rows and returns its first result.
  float Run(TpuStep* step, std::initializer_list<float> rows) {
    const Tensor x =
        Tensor::FromValues<float>({static_cast<int64_t>(rows.size())}, rows);
    EXPECT_OK(step->Start({Element{x}}, 0));
    return step->Finish().value()[0][0].scalar<float>();
  }

  float Value() { return variables_->Read("v").value().scalar<float>(); }

  std::shared_ptr<TpuSystem> system_;
  std::unique_ptr<TpuVariableStore> variables_;
};

// Two rows for each device, then three rows, which each device adds.
TEST_F(TpuStepTest, AssignmentsAreAggregated) {
  struct Case {
    proto::VariableSynchronization synchronization;
    proto::VariableAggregation aggregation;
    float divided, whole;
  };
  for (const Case& c :
       {Case{proto::SYNCHRONIZATION_ON_WRITE, proto::AGGREGATION_SUM, 10, 6},
        {proto::SYNCHRONIZATION_ON_WRITE, proto::AGGREGATION_MEAN, 5, 6},
        {proto::SYNCHRONIZATION_ON_WRITE, proto::AGGREGATION_ONLY_FIRST_REPLICA,
         3, 6},
        {proto::SYNCHRONIZATION_ON_READ, proto::AGGREGATION_SUM, 10, 6},
        {proto::SYNCHRONIZATION_ON_READ, proto::AGGREGATION_MEAN, 5, 6},
        {proto::SYNCHRONIZATION_ON_READ, proto::AGGREGATION_ONLY_FIRST_REPLICA,
         3, 6}}) {
    SCOPED_TRACE(absl::StrCat(c.synchronization, " ", c.aggregation));
    variables_ = std::make_unique<TpuVariableStore>(system_);
    CreateVariable(c.synchronization, c.aggregation);
    ASSERT_OK_AND_ASSIGN(const auto step, AddingStep());
    EXPECT_EQ(Run(step.get(), {1, 2, 3, 4}), 10);
    EXPECT_EQ(Value(), c.divided);
    EXPECT_EQ(Run(step.get(), {1, 2, 3}), 6);
    EXPECT_EQ(Value(), c.divided + c.whole);
    ASSERT_OK(variables_->Assign("v", Tensor::Scalar<float>(8)));
    EXPECT_EQ(Value(), 8);
    EXPECT_EQ(Run(step.get(), {1, 2, 3, 4}), 10);
    EXPECT_EQ(Value(), 8 + c.divided);
    EXPECT_EQ(step->program_count(), 2);
  }
}

TEST_F(TpuStepTest, StateHasSlotsAndIsRestored) {
  CreateVariable(proto::SYNCHRONIZATION_ON_WRITE, proto::AGGREGATION_NONE);
  ASSERT_OK(
      variables_->SetOptimizer(Sgd({.learning_rate = 1, .momentum = 0.5})));
  GraphBuilder builder(&BuiltinOps(), "step");
  const muster::Value x = builder.Parameter("x", {kF32, {Shape::kUnknown}});
  ApplyGradient({"v", {kF32, {}}}, Sum(x, {0}));
  builder.AddResult(Sum(x, {0}));
  ASSERT_OK_AND_ASSIGN(
      const auto step,
      TpuStep::Create(std::move(builder).Build().value(), system_,
                      variables_.get(), TpuStep::Results::kSummed));
  Run(step.get(), {1, 1});
  ASSERT_OK_AND_ASSIGN(const VariableState state, variables_->ReadState("v"));
  EXPECT_EQ(state.value.scalar<float>(), -2);
  ASSERT_EQ(state.slots.size(), 1u);
  EXPECT_EQ(state.slots[0].name, "momentum");
  EXPECT_EQ(state.slots[0].value.scalar<float>(), -2);
  EXPECT_EQ(state.update_count, 1);
  Run(step.get(), {1, 1});
  EXPECT_EQ(Value(), -5);
  EXPECT_THAT(variables_->UpdateCounts({"v"}), IsOkAndHolds(ElementsAre(2)));
  ASSERT_OK(variables_->RestoreState("v", state));
  EXPECT_THAT(variables_->UpdateCounts({"v"}), IsOkAndHolds(ElementsAre(1)));
  Run(step.get(), {1, 1});
  EXPECT_EQ(Value(), -5);
}

TEST_F(TpuStepTest, GradientNeedsAnOptimizer) {
  CreateVariable(proto::SYNCHRONIZATION_ON_WRITE, proto::AGGREGATION_NONE);
  GraphBuilder builder(&BuiltinOps(), "step");
  const muster::Value x = builder.Parameter("x", {kF32, {Shape::kUnknown}});
  ApplyGradient({"v", {kF32, {}}}, Sum(x, {0}));
  ASSERT_OK_AND_ASSIGN(
      const auto step,
      TpuStep::Create(std::move(builder).Build().value(), system_,
                      variables_.get(), TpuStep::Results::kSummed));
  EXPECT_THAT(step->Start({Element{Tensor::Zeros(kF32, {2})}}, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"v\" gets a gradient")));
}

TEST_F(TpuStepTest, MissingVariableIsAnError) {
  EXPECT_THAT(AddingStep(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TpuStepTest, SystemIsSharedWhileItIsUsed) {
  const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
  ASSERT_OK_AND_ASSIGN(
      const auto same,
      InitializeTpuSystem({.plugin = plugin, .cpu_device_count = kDevices}));
  EXPECT_EQ(same, system_);
  EXPECT_EQ(same->device_count(), kDevices);
  EXPECT_EQ(same->device_names().size(), 2u);
  EXPECT_THAT(InitializeTpuSystem({.plugin = plugin, .cpu_device_count = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cpu_device_count is -1")));
}

}  // namespace
}  // namespace muster
