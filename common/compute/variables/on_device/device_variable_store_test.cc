// The same updates give the same results for variables on a simulated GPU as
// for variables on the host.

#include "common/compute/variables/on_device/device_variable_store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/testing/device_store_fixture.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

class DeviceVariableStoreTest : public DeviceStoreTest {};
INSTANTIATE_TEST_SUITE_P(Seeds, DeviceVariableStoreTest,
                         ::testing::Values(1, 2));

TEST_P(DeviceVariableStoreTest, AssignsAddsAndSubtracts) {
  const DType dtypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16,
                          DType::kFloat16, DType::kInt32,   DType::kInt64,
                          DType::kUint8,   DType::kBool};
  std::vector<Change> changes;
  int variable = 0;
  for (const DType dtype : dtypes) {
    Create(absl::StrCat("v", variable), dtype, {6, 3});
    changes.push_back({variable, UpdateKind::kAssign, Random(dtype, {6, 3})});
    changes.push_back(
        RowsOf(variable, UpdateKind::kScatterUpdate, dtype, 6, 3));
    if (dtype != DType::kBool) {
      changes.push_back(
          {variable, UpdateKind::kAssignAdd, Random(dtype, {6, 3})});
      changes.push_back(
          {variable, UpdateKind::kAssignSub, Random(dtype, {6, 3})});
      changes.push_back(RowsOf(variable, UpdateKind::kScatterAdd, dtype, 6, 3));
      changes.push_back(RowsOf(variable, UpdateKind::kScatterSub, dtype, 6, 3));
    }
    ++variable;
  }
  for (int step = 0; step < 2; ++step) RunBoth(changes);
  ExpectSameStates();
}

// More rows than one sort handles, in counts that are not powers of two.
TEST_P(DeviceVariableStoreTest, ManyRowsAreCombinedInTheOrderOfPositions) {
  Create("table", DType::kFloat32, {40, 3});
  SetOptimizer(Adam({.learning_rate = 0.1}));
  for (const int64_t count : {1, 63, 64, 65, 128, 129, 300, 1000}) {
    SCOPED_TRACE(count);
    std::vector<Change> changes;
    for (const UpdateKind kind :
         {UpdateKind::kScatterUpdate, UpdateKind::kScatterAdd,
          UpdateKind::kApplySparseGradient}) {
      Tensor indices(DType::kInt64, {count});
      for (int64_t& index : indices.mutable_flat<int64_t>()) {
        index = static_cast<int64_t>(Next(40));
      }
      changes.push_back(
          {0, kind, Random(DType::kFloat32, {count, 3}), indices});
    }
    RunBoth(changes);
    ExpectSameStates();
    if (HasFailure()) return;
  }
}

TEST_P(DeviceVariableStoreTest, GradientsAndAssignmentsStayInOrder) {
  Create("v", DType::kFloat32, {4});
  SetOptimizer(Sgd({.learning_rate = 0.5}));
  const auto gradient = [&] {
    return Change{0, UpdateKind::kApplyGradient, Random(DType::kFloat32, {4})};
  };
  RunBoth({gradient(),
           gradient(),
           {0, UpdateKind::kAssignAdd, Random(DType::kFloat32, {4})},
           gradient()});
  ExpectSameStates();
}

TEST_P(DeviceVariableStoreTest, StepReadsWhatItHasUpdatedAndKeepsWhatItRead) {
  Create("v", DType::kFloat32, {2});
  ASSERT_OK(on_device_->Assign("v", Tensor::FromValues<float>({2}, {1, 2})));
  ASSERT_OK_AND_ASSIGN(const auto session, OpenOnDevice());
  ASSERT_OK(session->Begin(0));
  ASSERT_OK_AND_ASSIGN(const Tensor before, session->Read(0));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd,
                            Tensor::FromValues<float>({2}, {10, 10}), {}));
  ASSERT_OK_AND_ASSIGN(const Tensor after, session->Read(0));
  Tensor host_before(DType::kFloat32, {2});
  Tensor host_after(DType::kFloat32, {2});
  ASSERT_OK(stream_->Copy(before, &host_before));
  ASSERT_OK(stream_->Copy(after, &host_after));
  ASSERT_OK(session->Commit());
  EXPECT_THAT(host_before.flat<float>(), ElementsAre(1, 2));
  EXPECT_THAT(host_after.flat<float>(), ElementsAre(11, 12));
}

TEST_P(DeviceVariableStoreTest, IndexOutOfRangeChangesNothing) {
  CreateThree();
  Create("table", DType::kFloat32, {9, 4});
  SetOptimizer(Adam());
  std::vector<Change> changes = ThreeGradients();
  changes.push_back(
      RowsOf(3, UpdateKind::kApplySparseGradient, DType::kFloat32, 9, 4));
  RunBoth(changes);
  ASSERT_OK_AND_ASSIGN(const VariableState before,
                       on_device_->ReadState("matrix"));
  changes[3].indices.mutable_flat<int64_t>()[2] = 9;
  const absl::Status on_device =
      RunStep(*device_session_, changes, /*on_device=*/true);
  const absl::Status on_host =
      RunStep(*host_session_, changes, /*on_device=*/false);
  EXPECT_EQ(on_device, on_host);
  EXPECT_FALSE(on_device.ok());
  ASSERT_OK_AND_ASSIGN(const VariableState after,
                       on_device_->ReadState("matrix"));
  EXPECT_EQ(after.update_count, before.update_count);
  ExpectSame(after.value, before.value, 0);
  // The error does not affect the next step.
  changes[3].indices.mutable_flat<int64_t>()[2] = 8;
  EXPECT_OK(RunStep(*device_session_, changes, /*on_device=*/true));
}

TEST_P(DeviceVariableStoreTest, GathersRows) {
  Create("table", DType::kFloat32, {9, 4});
  const Tensor indices = Tensor::FromValues<int32_t>({2, 2}, {8, 0, 3, 8});
  Tensor wanted(DType::kFloat32, {2, 2, 4});
  ASSERT_OK_AND_ASSIGN(const auto host_session, on_host_->OpenSession(uses_));
  ASSERT_OK(host_session->Begin(0));
  ASSERT_OK(host_session->Gather(0, indices, &wanted));
  ASSERT_OK_AND_ASSIGN(const auto session, OpenOnDevice());
  ASSERT_OK(session->Begin(0));
  ASSERT_OK_AND_ASSIGN(const Tensor indices_on_device, OnDevice(indices));
  ASSERT_OK_AND_ASSIGN(Tensor rows,
                       OnDevice(Tensor::Zeros(DType::kFloat32, {2, 2, 4})));
  ASSERT_OK(session->Gather(0, indices_on_device, &rows));
  Tensor got(DType::kFloat32, {2, 2, 4});
  ASSERT_OK(stream_->Copy(rows, &got));
  ASSERT_OK(session->Commit());
  ExpectSame(got, wanted, 0);
}

TEST_P(DeviceVariableStoreTest, ChecksWhatTheHostChecks) {
  Create("v", DType::kFloat32, {2});
  Create("count", DType::kInt32, {});
  ASSERT_OK_AND_ASSIGN(const auto host_session, on_host_->OpenSession(uses_));
  ASSERT_OK_AND_ASSIGN(const auto session, OpenOnDevice());
  const Tensor one = Tensor::Full(DType::kFloat32, {2}, 1);
  const std::vector<Change> wrong = {
      {0, UpdateKind::kApplyGradient, one},
      {0, UpdateKind::kAssign, Tensor::Full(DType::kFloat32, {3}, 1)},
      {1, UpdateKind::kApplyGradient, Tensor::Scalar<int32_t>(1)},
      {1, UpdateKind::kScatterAdd, Tensor::Scalar<int32_t>(1),
       Tensor::Scalar<int32_t>(0)},
      {0, UpdateKind::kScatterAdd, one, Tensor::Scalar<int32_t>(0)}};
  for (const Change& change : wrong) {
    const absl::Status on_host =
        RunStep(*host_session, {change}, /*on_device=*/false);
    EXPECT_FALSE(on_host.ok());
    EXPECT_EQ(RunStep(*session, {change}, /*on_device=*/true), on_host);
  }
}

TEST_P(DeviceVariableStoreTest, SnapshotStaysAsItWas) {
  CreateThree();
  SetOptimizer(Adam({.learning_rate = 0.1}));
  RunBoth(ThreeGradients());
  ASSERT_OK_AND_ASSIGN(const VariableState state,
                       on_device_->ReadState("vector"));
  const Tensor value = state.value.Clone();
  RunBoth(ThreeGradients());
  ExpectSame(state.value, value, 0);
  EXPECT_EQ(state.update_count, 1);
}

TEST_P(DeviceVariableStoreTest, RestoredStateContinuesEqually) {
  CreateThree();
  SetOptimizer(Adam({.learning_rate = 0.1}));
  RunBoth(ThreeGradients());
  for (const VariableUse& use : uses_) {
    ASSERT_OK_AND_ASSIGN(VariableState state, on_device_->ReadState(use.name));
    // Restoring finds slots by name.
    std::swap(state.slots[0], state.slots[1]);
    ASSERT_OK(on_device_->Assign(
        use.name, Tensor::Zeros(state.value.dtype(), state.value.shape())));
    ASSERT_OK(on_device_->RestoreState(use.name, std::move(state)));
  }
  RunBoth(ThreeGradients());
  ExpectSameStates();
}

TEST_P(DeviceVariableStoreTest, SessionsOfSeveralStreamsAndOfTheHostInTurn) {
  CreateThree();
  SetOptimizer(Sgd({.learning_rate = 0.1, .momentum = 0.9}));
  ASSERT_OK_AND_ASSIGN(host_session_, on_host_->OpenSession(uses_));
  ASSERT_OK_AND_ASSIGN(const auto own_stream, device_->CreateStream());
  ASSERT_OK_AND_ASSIGN(const auto first, OpenOnDevice());
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      on_device_->OpenDeviceSession(uses_, device_.get(), own_stream.get()));
  ASSERT_OK_AND_ASSIGN(const auto of_host, on_device_->OpenSession(uses_));
  for (int step = 0; step < 9; ++step) {
    const std::vector<Change> changes = ThreeGradients();
    ASSERT_OK(RunStep(*host_session_, changes, /*on_device=*/false));
    VariableSession& session = *(step % 3 == 0   ? first
                                 : step % 3 == 1 ? second
                                                 : of_host);
    ASSERT_OK(RunStep(session, changes, /*on_device=*/false));
    ASSERT_OK_AND_ASSIGN(const Tensor got, on_device_->Read("vector"));
    ASSERT_OK_AND_ASSIGN(const Tensor wanted, on_host_->Read("vector"));
    ExpectSame(got, wanted, 0);
  }
  ASSERT_OK(of_host->Begin(0));
  ASSERT_OK_AND_ASSIGN(const Tensor read, of_host->Read(0));
  ASSERT_OK_AND_ASSIGN(const Tensor wanted, on_host_->Read("matrix"));
  ExpectSame(read, wanted, 0);
  ExpectSameStates();
}

}  // namespace
}  // namespace muster
