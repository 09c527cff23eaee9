// Optimizers give the same results for variables on a simulated GPU as for
// variables on the host.

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/testing/device_store_fixture.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class DeviceOptimizerTest : public DeviceStoreTest {};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceOptimizerTest, ::testing::Values(1, 2));

std::vector<OptimizerOptions> AllStages() {
  return {{.gradient_accumulation_steps = 2},
          {.gradient_accumulation_steps = 3},
          {.use_ema = true, .ema_momentum = 0.7},
          {.use_ema = true, .ema_momentum = 0.7, .ema_overwrite_frequency = 2},
          {.weight_decay = 0.01,
           .gradient_accumulation_steps = 2,
           .use_ema = true,
           .ema_momentum = 0.7,
           .ema_overwrite_frequency = 2}};
}

// Each optimizer with its defaults, and with each of its options.
std::vector<Optimizer> AllRules() {
  const OptimizerOptions decay = {.weight_decay = 0.01};
  std::vector<Optimizer> rules = {
      Sgd({.learning_rate = 0.1}),
      Sgd({.learning_rate = 0.1}, decay),
      Sgd({.learning_rate = 0.1, .momentum = 0.9}, decay),
      Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}),
      Adam({.learning_rate = 0.1}),
      Adam({.learning_rate = 0.1, .amsgrad = true}),
      AdamW({.learning_rate = 0.1}),
      RmsProp({.learning_rate = 0.1}, decay),
      RmsProp({.learning_rate = 0.1, .momentum = 0.5}),
      RmsProp({.learning_rate = 0.1, .centered = true}),
      RmsProp({.learning_rate = 0.1, .momentum = 0.5, .centered = true}),
      Adagrad({.learning_rate = 0.1}, decay),
      Adadelta({.learning_rate = 0.5}, decay),
      Adamax({.learning_rate = 0.1}, decay),
      Nadam({.learning_rate = 0.1}, decay),
      ScheduleFreeAdamW({.learning_rate = 0.1, .warmup_steps = 2}, decay),
      Lion({.learning_rate = 0.1}, decay),
      Ftrl({.learning_rate = 0.1, .l1_regularization_strength = 0.01}),
      Ftrl({.learning_rate = 0.1, .learning_rate_power = -0.7}, decay)};
  for (const OptimizerKind* kind : kOptimizerKinds) {
    rules.push_back(kind->defaults());
  }
  for (const OptimizerOptions& stages : AllStages()) {
    rules.push_back(Adam({.learning_rate = 0.1, .amsgrad = true}, stages));
    rules.push_back(Lamb({.learning_rate = 0.1}, stages));
  }
  const OptimizerOptions all_stages = AllStages().back();
  rules.push_back(Adafactor({.learning_rate = 0.1}, all_stages));
  rules.push_back(Muon({.learning_rate = 0.1}, all_stages));
  rules.push_back(Muon(
      {.learning_rate = 0.1, .ns_steps = 3, .nesterov = false, .rms_rate = 0.2},
      decay));
  rules.push_back(
      Adafactor({.learning_rate = 0.1, .clip_threshold = 0.3}, decay));
  return rules;
}

// The device adds norms in another order. All other optimizers give the same
// bits.
double ToleranceOf(const Optimizer& optimizer) {
  const auto rule = UpdateRule::Create(optimizer);
  EXPECT_OK(rule.status());
  return (*rule)->needs_whole_variables() ? 1e-6 : 0;
}

// The device adds norms in another order than the host.
TEST_P(DeviceOptimizerTest, AppliesConstraintsAsTheHost) {
  for (const char* const text :
       {"max_norm { max_value: 1 axis: 0 }", "unit_norm { axis: [0, -1] }",
        "min_max_norm { min_value: 1 max_value: 2 rate: 0.5 axis: 1 }",
        "unit_norm {}", "non_neg {}"}) {
    proto::Constraint constraint;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(text, &constraint));
    for (const OptimizerOptions& stages :
         {OptimizerOptions(), OptimizerOptions{.gradient_accumulation_steps = 2,
                              .use_ema = true}}) {
      SCOPED_TRACE(text);
      Reset();
      Create("float", DType::kFloat32, {300, 3}, &constraint);
      Create("double", DType::kFloat64, {2, 5}, &constraint);
      Create("table", DType::kFloat32, {9, 4}, &constraint);
      SetOptimizer(Sgd({.learning_rate = 0.1, .momentum = 0.5}, stages));
      for (int step = 0; step < 3; ++step) {
        RunBoth(
            {{0, UpdateKind::kApplyGradient, Random(DType::kFloat32, {300, 3})},
             {1, UpdateKind::kApplyGradient, Random(DType::kFloat64, {2, 5})},
             RowsOf(2, UpdateKind::kApplySparseGradient, DType::kFloat32, 9,
                    4)});
        ExpectSameStates(2e-6);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(DeviceOptimizerTest, GivesTheBitsOfTheHost) {
  for (const Optimizer& rule : AllRules()) {
    SCOPED_TRACE(rule.message().ShortDebugString());
    Reset();
    CreateThree();
    Create("table", DType::kFloat32, {9, 4});
    SetOptimizer(rule);
    for (int step = 0; step < 5; ++step) {
      std::vector<Change> changes = ThreeGradients();
      changes.push_back(
          RowsOf(3, UpdateKind::kApplySparseGradient, DType::kFloat32, 9, 4));
      RunBoth(changes);
      ExpectSameStates(ToleranceOf(rule));
      if (HasFailure()) return;
    }
  }
}

// Shapes that the kernels split into several blocks, including stacks of
// matrices.
TEST_P(DeviceOptimizerTest, UpdatesVariablesOfManyBlocksByWholeRules) {
  for (const Optimizer& rule :
       {Adafactor({.learning_rate = 0.1}), Muon({.learning_rate = 0.1})}) {
    SCOPED_TRACE(rule.message().ShortDebugString());
    Reset();
    Create("high", DType::kFloat32, {130, 66});
    Create("wide", DType::kFloat32, {3, 300});
    Create("stack", DType::kFloat32, {2, 3, 9, 5});
    Create("double", DType::kFloat64, {40, 67});
    SetOptimizer(rule, {.clipnorm = 5});
    for (int step = 0; step < 2; ++step) {
      std::vector<Change> changes;
      for (const VariableUse& use : uses_) {
        ASSERT_OK_AND_ASSIGN(const Tensor value, on_host_->Read(use.name));
        changes.push_back({static_cast<int>(changes.size()),
                           UpdateKind::kApplyGradient,
                           Random(value.dtype(), value.shape())});
      }
      RunBoth(changes);
      ExpectSameStates(1e-5);
      if (HasFailure()) return;
    }
  }
}

TEST_P(DeviceOptimizerTest, SlotsRestoredWithAnotherShapeAreRefused) {
  Create("matrix", DType::kFloat32, {5, 7});
  SetOptimizer(Adafactor());
  ASSERT_OK_AND_ASSIGN(VariableState state, on_device_->ReadState("matrix"));
  state.slots = {{.name = "r", .value = Random(DType::kFloat32, {7})}};
  ASSERT_OK(on_device_->RestoreState("matrix", std::move(state)));
  ASSERT_OK_AND_ASSIGN(const auto session, OpenOnDevice());
  EXPECT_THAT(RunStep(*session,
                      {{0, UpdateKind::kApplyGradient,
                        Random(DType::kFloat32, {5, 7})}},
                      /*on_device=*/true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slot \"r\" was restored as float32[7]; "
                                 "adafactor needs float32[5]")));
}

// Norms are those of the mean gradients.
TEST_P(DeviceOptimizerTest, ClipsMeansOfAccumulatedGradients) {
  for (const GradientClipping& clipping :
       {GradientClipping{.clipvalue = 0.1}, GradientClipping{.clipnorm = 0.5},
        GradientClipping{.global_clipnorm = 0.5}}) {
    SCOPED_TRACE(absl::StrCat(clipping.clipvalue, " ", clipping.clipnorm, " ",
                              clipping.global_clipnorm));
    Reset();
    CreateThree();
    Create("table", DType::kFloat32, {9, 4});
    SetOptimizer(Sgd({.learning_rate = 0.1, .momentum = 0.9},
                     {.gradient_accumulation_steps = 2, .use_ema = true}),
                 clipping);
    for (int step = 0; step < 5; ++step) {
      std::vector<Change> changes = ThreeGradients();
      changes.push_back(
          RowsOf(3, UpdateKind::kApplySparseGradient, DType::kFloat32, 9, 4));
      RunBoth(changes);
      ExpectSameStates(1e-6);
      if (HasFailure()) return;
    }
  }
}

// A batch without rows still applies the sums of the earlier batches.
TEST_P(DeviceOptimizerTest, AnEmptyGradientCompletesAnUpdate) {
  Create("table", DType::kFloat32, {9, 4});
  SetOptimizer(Sgd({.learning_rate = 0.1},
                   {.gradient_accumulation_steps = 2, .use_ema = true}));
  RunBoth({RowsOf(0, UpdateKind::kApplySparseGradient, DType::kFloat32, 9, 4)});
  RunBoth({{0, UpdateKind::kApplySparseGradient,
            Tensor(DType::kFloat32, {0, 4}), Tensor(DType::kInt64, {0})}});
  ExpectSameStates();
}

TEST_P(DeviceOptimizerTest, GradientOfNoRowsIsConstrainedAsOnTheHost) {
  proto::Constraint constraint;
  constraint.mutable_non_neg();
  Create("table", DType::kFloat32, {9, 4}, &constraint);
  SetOptimizer(Sgd({.learning_rate = 0.1}));
  RunBoth({{0, UpdateKind::kApplySparseGradient,
            Tensor(DType::kFloat32, {0, 4}), Tensor(DType::kInt64, {0})}});
  ExpectSameStates();
}

// Restores in the middle of an update, into a store that has taken no step.
TEST_P(DeviceOptimizerTest, RestoredSumsAndAveragesContinueEqually) {
  const Optimizer optimizer =
      Lamb({.learning_rate = 0.1},
           {.gradient_accumulation_steps = 3, .use_ema = true});
  CreateThree();
  SetOptimizer(optimizer);
  for (int step = 0; step < 4; ++step) RunBoth(ThreeGradients());
  ASSERT_OK_AND_ASSIGN(auto restored,
                       DeviceVariableStore::Create(device_.get()));
  ASSERT_OK(restored->SetOptimizer(optimizer));
  for (const VariableUse& use : uses_) {
    ASSERT_OK_AND_ASSIGN(const auto described, on_device_->Describe(use.name));
    ASSERT_OK(restored->Create(*described.spec));
    ASSERT_OK_AND_ASSIGN(VariableState state, on_device_->ReadState(use.name));
    EXPECT_EQ(state.slots.size(), 4u);
    ASSERT_OK(restored->RestoreState(use.name, std::move(state)));
  }
  device_session_ = nullptr;
  on_device_ = std::move(restored);
  for (int step = 0; step < 3; ++step) RunBoth(ThreeGradients());
  ExpectSameStates(1e-6);
  for (ReplicaVariables* store : stores()) ASSERT_OK(store->AssignAverages());
  ExpectSameStates(1e-6);
}

// A step with invalid data, and the step enqueued after it, change neither
// variables nor sums nor averages.
TEST_P(DeviceOptimizerTest, StagesDoNothingBehindAClosedGate) {
  for (const Optimizer& optimizer : {Lamb(), Adafactor(), Muon(),
                                     Adam({}, {.gradient_accumulation_steps = 2,
                                              .use_ema = true,
                                              .ema_overwrite_frequency = 1})}) {
    SCOPED_TRACE(optimizer.message().ShortDebugString());
    Reset();
    CreateThree();
    Create("table", DType::kFloat32, {9, 4});
    SetOptimizer(optimizer);
    ASSERT_OK_AND_ASSIGN(const auto gate,
                         StepGate::Create(device_.get(), stream_.get()));
    ASSERT_OK_AND_ASSIGN(device_session_, OpenOnDevice());
    ASSERT_OK_AND_ASSIGN(host_session_, on_host_->OpenSession(uses_));
    GatedSteps* const gated = device_session_->UseGate(gate.get());
    ASSERT_NE(gated, nullptr);
    const auto changes = [&] {
      std::vector<Change> all = ThreeGradients();
      all.push_back(
          RowsOf(3, UpdateKind::kApplySparseGradient, DType::kFloat32, 9, 4));
      return all;
    };
    ASSERT_OK(gate->BeginStep().status());
    RunBoth(changes());
    ASSERT_OK(gated->Settle(/*was_applied=*/true));
    std::vector<Change> invalid = changes();
    invalid[3].indices.mutable_flat<int64_t>()[2] = 9;
    ASSERT_OK_AND_ASSIGN(const int32_t closes, gate->BeginStep());
    ASSERT_OK(RunStep(*device_session_, invalid, /*on_device=*/true));
    ASSERT_OK(gate->BeginStep().status());
    ASSERT_OK(RunStep(*device_session_, changes(), /*on_device=*/true));
    ASSERT_OK(gated->Settle(/*was_applied=*/false));
    ASSERT_OK(gated->Settle(/*was_applied=*/false));
    ExpectSameStates(1e-6);
    EXPECT_EQ(gate->closed_by(), closes);
    ASSERT_OK(gate->Open());
    ASSERT_OK(gate->BeginStep().status());
    RunBoth(changes());
    ASSERT_OK(gated->Settle(/*was_applied=*/true));
    ExpectSameStates(1e-6);
  }
}

TEST_P(DeviceOptimizerTest, ClipsValues) {
  CreateThree();
  SetOptimizer(Adam({.learning_rate = 0.1}), {.clipvalue = 0.25});
  for (int step = 0; step < 3; ++step) RunBoth(ThreeGradients());
  ExpectSameStates();
}

TEST_P(DeviceOptimizerTest, ClipsNorms) {
  CreateThree();
  Create("table", DType::kFloat64, {9, 4});
  SetOptimizer(Sgd({.learning_rate = 0.1, .momentum = 0.9}), {.clipnorm = 3});
  for (int step = 0; step < 3; ++step) {
    std::vector<Change> changes = ThreeGradients();
    changes.push_back(
        RowsOf(3, UpdateKind::kApplySparseGradient, DType::kFloat64, 9, 4));
    RunBoth(changes);
  }
  ExpectSameStates(1e-6);
}

TEST_P(DeviceOptimizerTest, ClipsTheGlobalNorm) {
  CreateThree();
  SetOptimizer(Sgd({.learning_rate = 0.1}), {.global_clipnorm = 2});
  for (int step = 0; step < 3; ++step) RunBoth(ThreeGradients());
  ExpectSameStates(1e-6);
  // One gradient that is not finite makes all updates NaN.
  std::vector<Change> changes = ThreeGradients();
  changes[1].value.mutable_flat<float>()[7] = HUGE_VALF;
  RunBoth(changes);
  ASSERT_OK_AND_ASSIGN(const Tensor matrix, on_device_->Read("matrix"));
  EXPECT_TRUE(std::isnan(matrix.flat<float>()[0]));
}

TEST_P(DeviceOptimizerTest, ClipsTheGlobalNormOfEachGroup) {
  CreateThree();
  SetOptimizer(Sgd({.learning_rate = 0.1}), {.global_clipnorm = 2});
  uses_[1].updates[0].clipping.norm_group = 1;
  for (int step = 0; step < 3; ++step) RunBoth(ThreeGradients());
  ExpectSameStates(1e-6);
}

TEST_P(DeviceOptimizerTest, SteadyStepIsOneLaunchForEachDTypeAndPass) {
  struct Case {
    Optimizer optimizer;
    int launches_of_two_steps;  // For each dtype.
  };
  const Case cases[] = {
      {Adam(), 2},
      {Adam({}, {.gradient_accumulation_steps = 2}), 3},
      {Adam({}, {.use_ema = true}), 4},
      {Adam({}, {.gradient_accumulation_steps = 2, .use_ema = true}), 5},
      // Two passes, and two launches for the norms.
      {Lamb(), 8}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.optimizer.message().ShortDebugString());
    Reset();
    CreateThree();
    SetOptimizer(c.optimizer);
    ASSERT_OK_AND_ASSIGN(const auto session, OpenOnDevice());
    std::vector<Tensor> gradients;
    for (const Change& change : ThreeGradients()) {
      ASSERT_OK_AND_ASSIGN(gradients.emplace_back(), OnDevice(change.value));
    }
    const auto run_two = [&]() -> absl::Status {
      for (int step = 0; step < 2; ++step) {
        RETURN_IF_ERROR(session->Begin(0));
        for (int i = 0; i < 3; ++i) {
          RETURN_IF_ERROR(session->Read(i).status());
          RETURN_IF_ERROR(
              session->Update(i, UpdateKind::kApplyGradient, gradients[i], {}));
        }
        RETURN_IF_ERROR(session->Commit());
      }
      return absl::OkStatus();
    };
    ASSERT_OK(run_two());
    const auto before = machine_.counts();
    ASSERT_OK(run_two());
    auto counts = machine_.counts();
    for (const auto& [function, count] : before) counts[function] -= count;
    std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
    const int launch_count = 2 * c.launches_of_two_steps;  // float32, float64
    EXPECT_EQ(counts["cuLaunchKernelEx"], launch_count);
    EXPECT_EQ(counts["cuEventRecord"], 2);
    int64_t call_count = 0;
    for (const auto& [function, count] : counts) {
      if (function != "cuCtxSetCurrent") call_count += count;
    }
    // No copies, allocations or waits.
    EXPECT_EQ(call_count, launch_count + 2);
  }
}

}  // namespace
}  // namespace muster
