// Variables of a GPU take the updates that variables of the host take: on
// simulated GPUs.

#include "common/compute/variables/device_variable_store.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/gradient_clipping.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

// One update of a step.
struct Change {
  int variable = 0;
  UpdateKind kind = UpdateKind::kAssign;
  Tensor value = {};
  Tensor indices = {};
};

class DeviceVariableStoreTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceVariableStoreTest() : machine_({.seed = GetParam()}) {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 8 << 20, .piece_bytes = 1 << 20}});
    EXPECT_OK(device);
    device_ = *std::move(device);
    auto stream = device_->CreateStream();
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
    auto store = DeviceVariableStore::Create(device_.get());
    EXPECT_OK(store);
    on_device_ = *std::move(store);
  }

  // Creates a variable in both stores, with random values.
  void Create(const std::string& name, DType dtype, const Shape& shape) {
    proto::VariableSpec spec;
    spec.set_name(name);
    spec.set_dtype(EncodeDType(dtype));
    *spec.mutable_shape() = EncodeShape(shape);
    *spec.mutable_initializer()->mutable_value() =
        EncodeTensor(Random(dtype, shape));
    for (ReplicaVariables* store : stores()) ASSERT_OK(store->Create(spec));
    uses_.push_back({.name = name, .is_read = true, .is_updated = true});
  }

  void SetOptimizer(const Optimizer& optimizer,
                    const GradientClipping& clipping = {}) {
    for (ReplicaVariables* store : stores()) {
      ASSERT_OK(store->SetOptimizer(optimizer));
    }
    int position = 0;
    for (VariableUse& use : uses_) {
      use.updates = {{.position = position++,
                      .kind = UpdateKind::kApplyGradient,
                      .clipping = clipping}};
    }
  }

  std::vector<ReplicaVariables*> stores() {
    return {on_host_.get(), on_device_.get()};
  }

  // Small numbers of both signs.
  Tensor Random(DType dtype, const Shape& shape) {
    Tensor tensor(dtype, shape);
    VisitNumber(dtype, [&]<typename T>() {
      for (T& element : tensor.mutable_flat<T>()) {
        const int number = static_cast<int>(Next(2001)) - 1000;
        element = IsFloating(dtype) ? T(static_cast<float>(number) / 500)
                                    : static_cast<T>(number);
      }
    });
    return tensor;
  }

  uint64_t Next(uint64_t bound) { return FoldIn(GetParam(), ++draw_) % bound; }

  absl::StatusOr<Tensor> OnDevice(const Tensor& tensor) {
    if (!tensor.IsValid()) return tensor;
    ASSIGN_OR_RETURN(
        std::shared_ptr<Buffer> buffer,
        device_->memory().Allocate(tensor.size_bytes(), {"operand", "test"}));
    device_->memory().NoteUse(*buffer, stream_.get());
    Tensor copy(tensor.dtype(), tensor.shape(), std::move(buffer));
    RETURN_IF_ERROR(stream_->Copy(tensor, &copy));
    return copy;
  }

  absl::StatusOr<std::unique_ptr<VariableSession>> OpenOnDevice() {
    return on_device_->OpenDeviceSession(uses_, device_.get(), stream_.get());
  }

  absl::Status RunStep(VariableSession& session,
                       const std::vector<Change>& changes, bool on_device) {
    RETURN_IF_ERROR(session.Begin(0));
    for (const Change& change : changes) {
      Tensor value = change.value;
      Tensor indices = change.indices;
      if (on_device) {
        ASSIGN_OR_RETURN(value, OnDevice(value));
        ASSIGN_OR_RETURN(indices, OnDevice(indices));
      }
      RETURN_IF_ERROR(
          session.Update(change.variable, change.kind, value, indices));
    }
    return session.Commit();
  }

  // A step with these updates, on the device and on the host.
  void RunBoth(const std::vector<Change>& changes) {
    if (device_session_ == nullptr) {
      ASSERT_OK_AND_ASSIGN(host_session_, on_host_->OpenSession(uses_));
      ASSERT_OK_AND_ASSIGN(device_session_, OpenOnDevice());
      ASSERT_NE(device_session_, nullptr);
    }
    ASSERT_OK(RunStep(*host_session_, changes, /*on_device=*/false));
    ASSERT_OK(RunStep(*device_session_, changes, /*on_device=*/true));
  }

  void ExpectSame(const Tensor& got, const Tensor& wanted, double tolerance) {
    ASSERT_EQ(got.type(), wanted.type());
    for (int64_t i = 0; i < wanted.element_count(); ++i) {
      const double x = wanted.ElementAsDouble(i);
      if (tolerance == 0) {
        ASSERT_EQ(got.ElementAsDouble(i), x) << "element " << i;
      } else {
        ASSERT_NEAR(got.ElementAsDouble(i), x, tolerance) << "element " << i;
      }
    }
  }

  // 0: the same bits.
  void ExpectSameStates(double tolerance = 0) {
    for (const VariableUse& use : uses_) {
      SCOPED_TRACE(use.name);
      ASSERT_OK_AND_ASSIGN(const VariableState wanted,
                           on_host_->ReadState(use.name));
      ASSERT_OK_AND_ASSIGN(const VariableState got,
                           on_device_->ReadState(use.name));
      EXPECT_EQ(got.update_count, wanted.update_count);
      ExpectSame(got.value, wanted.value, tolerance);
      ASSERT_EQ(got.slots.size(), wanted.slots.size());
      for (size_t i = 0; i < wanted.slots.size(); ++i) {
        EXPECT_EQ(got.slots[i].name, wanted.slots[i].name);
        ExpectSame(got.slots[i].value, wanted.slots[i].value, tolerance);
      }
    }
  }

  // More elements than a block of threads updates, and fewer.
  void CreateThree() {
    Create("matrix", DType::kFloat32, {5, 7});
    Create("vector", DType::kFloat32, {1300});
    Create("double", DType::kFloat64, {3, 2});
  }
  std::vector<Change> ThreeGradients() {
    return {{0, UpdateKind::kApplyGradient, Random(DType::kFloat32, {5, 7})},
            {1, UpdateKind::kApplyGradient, Random(DType::kFloat32, {1300})},
            {2, UpdateKind::kApplyGradient, Random(DType::kFloat64, {3, 2})}};
  }
  Change RowsOf(int variable, UpdateKind kind, DType dtype, int64_t rows,
                int64_t row_elements) {
    Tensor indices(DType::kInt64, {3, 2});
    for (int64_t& index : indices.mutable_flat<int64_t>()) {
      index = static_cast<int64_t>(Next(rows));
    }
    indices.mutable_flat<int64_t>()[4] = indices.flat<int64_t>()[1];
    return {variable, kind, Random(dtype, {3, 2, row_elements}), indices};
  }

  SimulatedMachine machine_;
  uint64_t draw_ = 0;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<LocalVariableStore> on_host_ =
      std::make_unique<LocalVariableStore>();
  std::unique_ptr<DeviceVariableStore> on_device_;
  std::vector<VariableUse> uses_;
  std::unique_ptr<VariableSession> host_session_;
  std::unique_ptr<VariableSession> device_session_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceVariableStoreTest,
                         ::testing::Values(1, 2));

// Each optimizer with its defaults, and with every function that it has.
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
      Lion({.learning_rate = 0.1}, decay),
      Ftrl({.learning_rate = 0.1, .l1_regularization_strength = 0.01}),
      Ftrl({.learning_rate = 0.1, .learning_rate_power = -0.7}, decay)};
  for (const OptimizerKind* kind : kOptimizerKinds) {
    const auto rule = UpdateRule::Create(kind->defaults());
    EXPECT_OK(rule.status());
    if ((*rule)->has_form()) rules.push_back(kind->defaults());
  }
  return rules;
}

class EachRuleTest : public DeviceVariableStoreTest {};
INSTANTIATE_TEST_SUITE_P(Seeds, EachRuleTest, ::testing::Values(1, 2));

TEST_P(EachRuleTest, GivesTheBitsOfTheHost) {
  for (const Optimizer& rule : AllRules()) {
    SCOPED_TRACE(rule.message().ShortDebugString());
    device_session_ = nullptr;
    uses_.clear();
    on_host_ = std::make_unique<LocalVariableStore>();
    ASSERT_OK_AND_ASSIGN(on_device_,
                         DeviceVariableStore::Create(device_.get()));
    CreateThree();
    Create("table", DType::kFloat32, {9, 4});
    SetOptimizer(rule);
    for (int step = 0; step < 4; ++step) {
      std::vector<Change> changes = ThreeGradients();
      changes.push_back(
          RowsOf(3, UpdateKind::kApplySparseGradient, DType::kFloat32, 9, 4));
      RunBoth(changes);
    }
    ExpectSameStates();
    if (HasFailure()) return;
  }
}

TEST_P(DeviceVariableStoreTest, RefusesWhatNoKernelComputes) {
  ASSERT_OK_AND_ASSIGN(const auto store,
                       DeviceVariableStore::Create(device_.get()));
  for (const Optimizer& optimizer :
       {Lamb(), Sgd({}, {.gradient_accumulation_steps = 2}),
        Sgd({}, {.use_ema = true})}) {
    EXPECT_THAT(store->SetOptimizer(optimizer),
                StatusIs(absl::StatusCode::kUnimplemented,
                         ::testing::HasSubstr("gradient_accumulation_steps")));
  }
}

TEST_P(DeviceVariableStoreTest, ClipsValues) {
  CreateThree();
  SetOptimizer(Adam({.learning_rate = 0.1}), {.clipvalue = 0.25});
  for (int step = 0; step < 3; ++step) RunBoth(ThreeGradients());
  ExpectSameStates();
}

TEST_P(DeviceVariableStoreTest, ClipsNorms) {
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

TEST_P(DeviceVariableStoreTest, ClipsTheGlobalNorm) {
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

// More rows than are sorted at once, in numbers that are no powers of two.
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
  // The next step is not affected.
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
    // Slots are found by name.
    std::swap(state.slots[0], state.slots[1]);
    ASSERT_OK(on_device_->Assign(
        use.name, Tensor::Zeros(state.value.dtype(), state.value.shape())));
    ASSERT_OK(on_device_->RestoreState(use.name, std::move(state)));
  }
  RunBoth(ThreeGradients());
  ExpectSameStates();
}

TEST_P(DeviceVariableStoreTest, SteadyStepIsOneLaunchForEachDType) {
  CreateThree();
  SetOptimizer(Adam({.learning_rate = 0.1}));
  ASSERT_OK_AND_ASSIGN(const auto session, OpenOnDevice());
  std::vector<Tensor> gradients;
  for (const Change& change : ThreeGradients()) {
    ASSERT_OK_AND_ASSIGN(gradients.emplace_back(), OnDevice(change.value));
  }
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(session->Begin(0));
    for (int i = 0; i < 3; ++i) {
      RETURN_IF_ERROR(session->Read(i).status());
      RETURN_IF_ERROR(
          session->Update(i, UpdateKind::kApplyGradient, gradients[i], {}));
    }
    return session->Commit();
  };
  ASSERT_OK(run());
  const auto before = machine_.counts();
  ASSERT_OK(run());
  auto counts = machine_.counts();
  for (const auto& [function, count] : before) counts[function] -= count;
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  EXPECT_EQ(counts["cuLaunchKernel"], 2);  // float32, float64
  EXPECT_EQ(counts["cuEventRecord"], 1);
  int64_t call_count = 0;
  for (const auto& [function, count] : counts) {
    if (function != "cuCtxSetCurrent") call_count += count;
  }
  EXPECT_EQ(call_count, 3);  // No copy, no allocation, no wait.
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
