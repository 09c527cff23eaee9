#ifndef COMMON_COMPUTE_VARIABLES_TESTING_DEVICE_STORE_FIXTURE_H_
#define COMMON_COMPUTE_VARIABLES_TESTING_DEVICE_STORE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {

// One update of a step.
struct Change {
  int variable = 0;
  UpdateKind kind = UpdateKind::kAssign;
  Tensor value = {};
  Tensor indices = {};
};

// The same variables in a store of a simulated GPU and in one of the host. The
// parameter is a seed.
class DeviceStoreTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceStoreTest() : machine_({.seed = GetParam()}) {
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

  // Starts over without variables.
  void Reset() {
    device_session_ = nullptr;
    host_session_ = nullptr;
    uses_.clear();
    on_host_ = std::make_unique<LocalVariableStore>();
    ASSERT_OK_AND_ASSIGN(on_device_,
                         DeviceVariableStore::Create(device_.get()));
  }

  // Creates a variable in both stores, with random values.
  void Create(const std::string& name, DType dtype, const Shape& shape,
              const proto::Constraint* constraint = nullptr) {
    proto::VariableSpec spec;
    spec.set_name(name);
    spec.set_dtype(EncodeDType(dtype));
    *spec.mutable_shape() = EncodeShape(shape);
    *spec.mutable_initializer()->mutable_value() =
        EncodeTensor(Random(dtype, shape));
    if (constraint != nullptr) *spec.mutable_constraint() = *constraint;
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

  // Returns small numbers of both signs.
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

  // Runs a step with these updates on the device and on the host.
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

  // A tolerance of 0 requires the same bits.
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

  // Creates variables with more and with fewer elements than one block of
  // threads updates.
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

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_TESTING_DEVICE_STORE_FIXTURE_H_
