// Tests properties that only simulated GPUs have: errors on demand, and
// detection of early reads and of host access to device memory.

#include <cmath>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/conformance/device_test_kernels_image.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Truly;

absl::Time Soon() { return Clock::Real()->Now() + absl::Seconds(60); }

class SimulatedMachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 4 << 20, .piece_bytes = 1 << 20}});
    ASSERT_OK(device);
    device_ = *std::move(device);
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
  }

  Tensor OnDevice(int64_t count) {
    auto buffer =
        device_->memory().Allocate(count * sizeof(float), {"tensor", "x"});
    EXPECT_OK(buffer);
    return Tensor(DType::kFloat32, {count}, *std::move(buffer));
  }
  Tensor Pinned(int64_t count) {
    auto buffer = device_->pinned_memory().Allocate(count * sizeof(float));
    EXPECT_OK(buffer);
    return Tensor(DType::kFloat32, {count}, *std::move(buffer));
  }

  SimulatedMachine machine_{{.device_count = 2}};
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
};

using SimulatedMachineDeathTest = SimulatedMachineTest;

TEST_F(SimulatedMachineDeathTest, HostCannotTouchDeviceMemory) {
  const Tensor tensor = OnDevice(4);
  EXPECT_OK(stream_->Fill(tensor.address(), 0, tensor.size_bytes()));
  EXPECT_OK(stream_->Drain(Soon(), "the fill"));
  const auto read = [&] {
    volatile const uint8_t* const address = tensor.address();
    return *address;
  };
  EXPECT_DEATH(read(), "");
}

TEST_F(SimulatedMachineTest, FreshAndReusedMemoryIsNan) {
  for (int round = 0; round < 2; ++round) {
    const Tensor tensor = OnDevice(64);
    Tensor host(DType::kFloat32, {64});
    EXPECT_OK(stream_->Copy(tensor, &host));
    EXPECT_TRUE(std::isnan(host.flat<float>()[63])) << "round " << round;
    EXPECT_OK(stream_->Fill(tensor.address(), 0, tensor.size_bytes()));
    EXPECT_OK(stream_->Drain(Soon(), "the fill"));
  }
}

TEST_F(SimulatedMachineTest, WorkWaitsUntilTheHostWaits) {
  const Tensor tensor = OnDevice(1);
  Tensor pinned = Pinned(1);
  pinned.mutable_flat<float>()[0] = 5;
  ASSERT_OK_AND_ASSIGN(const auto event, device_->CreateEvent());
  EXPECT_OK(stream_->Fill(tensor.address(), 0, tensor.size_bytes()));
  EXPECT_OK(stream_->Copy(tensor, &pinned));
  EXPECT_OK(stream_->Record(event.get()));
  EXPECT_THAT(event->IsReached(), IsOkAndHolds(false));
  EXPECT_EQ(pinned.flat<float>()[0], 5);
  // The second query waits for the work, so that polling ends.
  EXPECT_THAT(event->IsReached(), IsOkAndHolds(true));
  EXPECT_EQ(pinned.flat<float>()[0], 0);
}

TEST_F(SimulatedMachineTest, DetectsEarlyReuseOfAPinnedSource) {
  const Tensor tensor = OnDevice(1);
  Tensor pinned = Pinned(1);
  pinned.mutable_flat<float>()[0] = 1;
  Tensor copy = tensor;
  EXPECT_OK(stream_->Copy(pinned, &copy));
  pinned.mutable_flat<float>()[0] = 2;
  Tensor host(DType::kFloat32, {1});
  EXPECT_OK(stream_->Copy(tensor, &host));
  EXPECT_EQ(host.flat<float>()[0], 2);
}

TEST_F(SimulatedMachineTest, InjectedFaultIsReturnedOnce) {
  machine_.Fail("cuMemsetD8Async", driver::kInvalidValue, /*after=*/1);
  const Tensor tensor = OnDevice(1);
  EXPECT_OK(stream_->Fill(tensor.address(), 0, 4));
  EXPECT_THAT(stream_->Fill(tensor.address(), 0, 4),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("gpu:0"), HasSubstr("cuMemsetD8Async"),
                             HasSubstr("CUDA_ERROR_INVALID_VALUE"))));
  EXPECT_OK(stream_->Fill(tensor.address(), 0, 4));
  EXPECT_OK(device_->health());
}

TEST_F(SimulatedMachineTest, FailedGrowthLeavesMemoryUsable) {
  machine_.Fail("cuMemSetAccess", driver::kOutOfMemory, 0);
  machine_.Fail("cuMemCreate", driver::kOutOfMemory, 1);
  EXPECT_THAT(
      device_->memory().Allocate(1000, {"block", "a"}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("block \"a\"")));
  EXPECT_EQ(device_->memory().report().mapped_bytes, 0);
  EXPECT_OK(device_->memory().Allocate(1000, {"block", "a"}));
}

TEST_F(SimulatedMachineTest, FailedKernelLosesTheDevice) {
  ASSERT_OK_AND_ASSIGN(
      const KernelFunction deadlock,
      device_->FindKernel(internal::device_test_kernels_image(), "deadlock"));
  EXPECT_OK(stream_->Launch(deadlock, {.block = {64, 1, 1}}, {}));
  const auto says_lost =
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("gpu:0"), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"),
                     HasSubstr("restart")));
  const absl::Status drained = stream_->Drain(Soon(), "the kernel");
  EXPECT_THAT(drained, says_lost);
  EXPECT_TRUE(drained.GetPayload(kDeviceLostUrl).has_value());
  EXPECT_THAT(device_->health(), says_lost);
  EXPECT_THAT(device_->CreateStream(), says_lost);
  // Other devices of the process continue.
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      Device::Create(
          &machine_.driver(),
          {.name = "gpu:1", .ordinal = 1, .memory = {.limit_bytes = 1 << 20}}));
  EXPECT_OK(other->CreateStream());
}

TEST_F(SimulatedMachineTest, WaitThatTakesTooLongNamesTheWork) {
  ASSERT_OK_AND_ASSIGN(const auto event, device_->CreateEvent());
  machine_.Fail("cuEventQuery", driver::kNotReady, 0, /*is_sticky=*/true);
  EXPECT_OK(stream_->Record(event.get()));
  EXPECT_THAT(
      stream_->Await(*event, Clock::Real()->Now() + absl::Milliseconds(5),
                     "results of step 41"),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("gpu:0"), HasSubstr("results of step 41"))));
}

TEST_F(SimulatedMachineTest, CountsCalls) {
  const Tensor tensor = OnDevice(1);
  EXPECT_OK(stream_->Fill(tensor.address(), 0, 4));
  EXPECT_OK(stream_->Fill(tensor.address(), 0, 4));
  EXPECT_EQ(machine_.counts().at("cuMemsetD8Async"), 2);
  EXPECT_EQ(machine_.counts().count("cuLaunchKernelEx"), 0);
}

TEST_F(SimulatedMachineTest, PinnedMemoryIsKept) {
  Pinned(10);
  Pinned(20);
  EXPECT_EQ(machine_.counts().at("cuMemHostAlloc"), 1);
}

}  // namespace
}  // namespace muster
