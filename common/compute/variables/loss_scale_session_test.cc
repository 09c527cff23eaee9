#include "common/compute/variables/loss_scale_session.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/testing/device_store_fixture.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The variables of CreateThree() and a loss scale, on the host and on a
// simulated GPU. Each test ends with equal states on both.
class LossScaleSessionTest : public DeviceStoreTest {
 protected:
  void CreateAll(const Optimizer& optimizer, double scale,
                 int64_t growth_steps) {
    CreateThree();
    const Optimizer of_scale = OptimizerOfLossScale(
        LossScaleOptimizer(optimizer, {.dynamic_growth_steps = growth_steps})
            .message());
    for (ReplicaVariables* store : stores()) {
      ASSERT_OK(store->SetOptimizerOf({"loss_scale", "other"}, of_scale));
    }
    SetOptimizer(optimizer);
    for (VariableUse& use : uses_) use.updates[0].loss_scale = "loss_scale";
    CreateScale("loss_scale", scale);
  }

  void CreateScale(const std::string& name, double scale) {
    Create(name, DType::kFloat32, {});
    for (ReplicaVariables* store : stores()) {
      ASSERT_OK(store->Assign(
          name, Tensor::Scalar<float>(static_cast<float>(scale))));
    }
  }

  // Returns gradients in which one element is `value`.
  std::vector<Change> GradientsWith(int variable, double value) {
    std::vector<Change> changes = ThreeGradients();
    Tensor& gradient = changes[variable].value;
    const int64_t last = gradient.element_count() - 1;
    if (gradient.dtype() == DType::kFloat64) {
      gradient.mutable_flat<double>()[last] = value;
    } else {
      gradient.mutable_flat<float>()[last] = static_cast<float>(value);
    }
    return changes;
  }

  double Scale() {
    const auto value = on_host_->Read("loss_scale");
    EXPECT_OK(value.status());
    return value->ElementAsDouble(0);
  }

  VariableState StateOf(const std::string& variable) {
    const auto state = on_host_->ReadState(variable);
    EXPECT_OK(state.status());
    return *state;
  }
};

INSTANTIATE_TEST_SUITE_P(Seeds, LossScaleSessionTest, ::testing::Values(1, 2));

TEST_P(LossScaleSessionTest, AppliesFiniteGradientsAsTheyAre) {
  CreateAll(Adam({.learning_rate = 0.1}), 1024, 100);
  RunBoth(ThreeGradients());
  RunBoth(ThreeGradients());
  ExpectSameStates(1e-6);
  EXPECT_EQ(StateOf("matrix").update_count, 2);
  EXPECT_EQ(Scale(), 1024);
}

TEST_P(LossScaleSessionTest, OneElementSkipsTheStepAndHalvesTheScale) {
  CreateAll(Adam({.learning_rate = 0.1}), 1024, 100);
  RunBoth(ThreeGradients());
  const std::vector<std::string> names = {"matrix", "vector", "double"};
  for (const double value :
       {double{kInfinity}, -double{kInfinity}, std::nan("")}) {
    for (int variable = 0; variable < 3; ++variable) {
      const double scale = Scale();
      std::vector<VariableState> before;
      for (const std::string& name : names) before.push_back(StateOf(name));
      RunBoth(GradientsWith(variable, value));
      EXPECT_EQ(Scale(), scale / 2);
      for (size_t i = 0; i < names.size(); ++i) {
        SCOPED_TRACE(names[i]);
        const VariableState after = StateOf(names[i]);
        EXPECT_EQ(after.update_count, before[i].update_count);
        ExpectSame(after.value, before[i].value, 0);
        ASSERT_EQ(after.slots.size(), before[i].slots.size());
        for (size_t k = 0; k < after.slots.size(); ++k) {
          ExpectSame(after.slots[k].value, before[i].slots[k].value, 0);
        }
      }
    }
  }
  // This is the optimizer's second step.
  RunBoth(ThreeGradients());
  EXPECT_EQ(StateOf("matrix").update_count, 2);
  ExpectSameStates(1e-6);
}

TEST_P(LossScaleSessionTest, DoublesAfterFiniteStepsInARow) {
  CreateAll(Sgd({.learning_rate = 0.1}), 8, 3);
  std::vector<double> scales;
  std::vector<double> counters;
  for (const bool is_finite : {true, true, true, true, false, true, true, true,
                               true, true, true, true}) {
    RunBoth(is_finite ? ThreeGradients() : GradientsWith(1, kInfinity));
    scales.push_back(Scale());
    counters.push_back(StateOf("loss_scale").slots[0].value.ElementAsDouble(0));
  }
  EXPECT_THAT(scales, ElementsAre(8, 8, 16, 16, 8, 8, 8, 16, 16, 16, 32, 32));
  EXPECT_THAT(counters, ElementsAre(1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1));
  ExpectSameStates();
}

TEST_P(LossScaleSessionTest, RowsCount) {
  CreateAll(Sgd({.learning_rate = 0.1}), 8, 100);
  uses_[0].updates[0].kind = UpdateKind::kApplySparseGradient;
  std::vector<Change> changes = ThreeGradients();
  changes[0] =
      RowsOf(0, UpdateKind::kApplySparseGradient, DType::kFloat32, 5, 7);
  RunBoth(changes);
  EXPECT_EQ(Scale(), 8);
  changes[0].value.mutable_flat<float>()[3] = kInfinity;
  RunBoth(changes);
  EXPECT_EQ(Scale(), 4);
  EXPECT_EQ(StateOf("vector").update_count, 1);
  ExpectSameStates(1e-6);
}

TEST_P(LossScaleSessionTest, AccumulationAndClippingSeeWhatIsApplied) {
  CreateAll(Sgd({.learning_rate = 1.0}, {.gradient_accumulation_steps = 2}), 8,
            100);
  for (int i = 0; i < 3; ++i) uses_[i].updates[0].clipping.clipnorm = 0.5;
  const Tensor before = StateOf("vector").value.Clone();
  RunBoth(ThreeGradients());
  RunBoth(GradientsWith(2, kInfinity));
  ExpectSame(StateOf("vector").value, before, 0);
  RunBoth(ThreeGradients());
  EXPECT_EQ(StateOf("vector").update_count, 2);
  const Tensor after = StateOf("vector").value;
  double squares = 0;
  for (int64_t i = 0; i < after.element_count(); ++i) {
    const double moved = after.ElementAsDouble(i) - before.ElementAsDouble(i);
    squares += moved * moved;
  }
  EXPECT_NEAR(std::sqrt(squares), 0.5, 1e-5);
  ExpectSameStates(1e-5);
}

TEST_P(LossScaleSessionTest, EachScaleHasGradientsOfItsOwn) {
  CreateAll(Sgd({.learning_rate = 0.1}), 8, 100);
  CreateScale("other", 64);
  uses_[1].updates[0].loss_scale = "other";
  RunBoth(GradientsWith(1, kInfinity));
  EXPECT_EQ(Scale(), 8);
  EXPECT_EQ(StateOf("other").value.ElementAsDouble(0), 32);
  EXPECT_EQ(StateOf("matrix").update_count, 1);
  EXPECT_EQ(StateOf("vector").update_count, 0);
  ExpectSameStates(1e-6);
}

TEST_P(LossScaleSessionTest, OtherUpdatesAreMade) {
  CreateAll(Sgd({.learning_rate = 0.1}), 8, 100);
  uses_[1].updates[0] = {.position = 1, .kind = UpdateKind::kAssign};
  std::vector<Change> changes = GradientsWith(0, kInfinity);
  changes[1].kind = UpdateKind::kAssign;
  RunBoth(changes);
  ExpectSame(StateOf("vector").value, changes[1].value, 0);
  EXPECT_EQ(StateOf("matrix").update_count, 0);
  ExpectSameStates();
}

TEST_P(LossScaleSessionTest, RejectsReadsAfterAGradient) {
  CreateAll(Sgd({.learning_rate = 0.1}), 8, 100);
  ASSERT_OK_AND_ASSIGN(const auto session, on_host_->OpenSession(uses_));
  ASSERT_OK(session->Begin(0));
  ASSERT_OK(session->Read(0).status());
  const Change change = ThreeGradients()[0];
  ASSERT_OK(session->Update(0, change.kind, change.value, change.indices));
  EXPECT_THAT(session->Read(0).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("variable \"matrix\": the step reads it "
                                 "after applying its gradient")));
  ASSERT_OK(session->Read(1).status());
}

// The host cannot tell whether the previous step was skipped, but the count of
// each update is right. Rates and bias corrections depend on it.
TEST_P(LossScaleSessionTest, UnsettledStepsCountOnlyAppliedUpdates) {
  const Optimizer optimizers[] = {
      Adam({.learning_rate = ExponentialDecay({.initial_learning_rate = 0.1,
                                               .decay_steps = 1,
                                               .decay_rate = 0.7})}),
      Adam({}, {.gradient_accumulation_steps = 2,
                .use_ema = true,
                .ema_overwrite_frequency = 3}),
      Sgd({.learning_rate = PiecewiseConstantDecay(
               {.boundaries = {1, 3}, .values = {0.5, 0.2, 0.1}})})};
  for (const Optimizer& optimizer : optimizers) {
    SCOPED_TRACE(optimizer.message().ShortDebugString());
    Reset();
    CreateAll(optimizer, 1024, 3);
    ASSERT_OK_AND_ASSIGN(const auto gate,
                         StepGate::Create(device_.get(), stream_.get()));
    ASSERT_OK_AND_ASSIGN(device_session_, OpenOnDevice());
    ASSERT_OK_AND_ASSIGN(host_session_, on_host_->OpenSession(uses_));
    GatedSteps* const gated = device_session_->UseGate(gate.get());
    ASSERT_NE(gated, nullptr);
    for (int step = 0; step < 12; ++step) {
      const bool is_finite = Next(3) > 0;
      const std::vector<Change> changes =
          is_finite ? ThreeGradients()
                    : GradientsWith(static_cast<int>(Next(3)), kInfinity);
      std::vector<Change> uploaded = changes;
      for (Change& change : uploaded) {
        ASSERT_OK_AND_ASSIGN(change.value, OnDevice(change.value));
      }
      ASSERT_OK(gate->BeginStep().status());
      auto calls = machine_.counts();
      ASSERT_OK(RunStep(*device_session_, uploaded, /*on_device=*/false));
      for (const auto& [function, count] : machine_.counts()) {
        if (function != "cuStreamSynchronize" && function != "cuEventQuery") {
          continue;
        }
        EXPECT_EQ(count, calls[function]) << function;
      }
      ASSERT_OK(RunStep(*host_session_, changes, /*on_device=*/false));
      if (step > 0) {
        ASSERT_OK(gated->Settle(/*was_applied=*/true));
      }
    }
    ASSERT_OK(gated->Settle(/*was_applied=*/true));
    ExpectSameStates();
  }
}

TEST_P(LossScaleSessionTest, AClosedGatePreventsChanges) {
  CreateAll(Adam({.learning_rate = 0.1}), 1024, 3);
  uses_[0].updates[0].kind = UpdateKind::kApplySparseGradient;
  ASSERT_OK_AND_ASSIGN(const auto gate,
                       StepGate::Create(device_.get(), stream_.get()));
  ASSERT_OK_AND_ASSIGN(device_session_, OpenOnDevice());
  ASSERT_OK_AND_ASSIGN(host_session_, on_host_->OpenSession(uses_));
  GatedSteps* const gated = device_session_->UseGate(gate.get());
  ASSERT_NE(gated, nullptr);
  const auto changes = [&](double value) {
    std::vector<Change> all = GradientsWith(1, value);
    all[0] = RowsOf(0, UpdateKind::kApplySparseGradient, DType::kFloat32, 5, 7);
    return all;
  };
  ASSERT_OK(gate->BeginStep().status());
  RunBoth(changes(0));
  std::vector<Change> invalid = changes(0);
  invalid[0].indices.mutable_flat<int64_t>()[2] = 5;
  ASSERT_OK_AND_ASSIGN(const int32_t closes, gate->BeginStep());
  ASSERT_OK(RunStep(*device_session_, invalid, /*on_device=*/true));
  ASSERT_OK(gated->Settle(/*was_applied=*/true));
  ASSERT_OK(gate->BeginStep().status());
  ASSERT_OK(RunStep(*device_session_, changes(kInfinity), /*on_device=*/true));
  ASSERT_OK(stream_->Drain(absl::InfiniteFuture(), "steps"));
  EXPECT_EQ(gate->closed_by(), closes);
  EXPECT_THAT(device_session_->DataError(0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5")));
  ASSERT_OK(gated->Settle(/*was_applied=*/false));
  ASSERT_OK(gated->Settle(/*was_applied=*/false));
  ExpectSameStates();
  ASSERT_OK(gate->Open());
  for (const double value : {0.0, double{kInfinity}, 0.0}) {
    ASSERT_OK(gate->BeginStep().status());
    RunBoth(changes(value));
    ASSERT_OK(gated->Settle(/*was_applied=*/true));
  }
  ExpectSameStates();
}

// A replica that applies no updates commits without gradients.
TEST_P(LossScaleSessionTest, StepsWithoutGradientsChangeNothing) {
  CreateAll(Sgd({.learning_rate = 0.1}), 8, 1);
  RunBoth({});
  EXPECT_EQ(Scale(), 8);
  EXPECT_EQ(StateOf("loss_scale").update_count, 0);
  ExpectSameStates();
}

}  // namespace
}  // namespace muster
