#include "common/compute/runtime/step_arguments.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/pinned_memory.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Use = StepArguments::Use;

const TensorType kLarge = {DType::kFloat32,
                           {StepArguments::kUploadBytesMin / 4}};
const TensorType kSmall = {DType::kInt64, {3}};

Tensor Large(float value) {
  Tensor tensor(kLarge.dtype, kLarge.shape);
  for (float& element : tensor.mutable_flat<float>()) element = value;
  return tensor;
}

Tensor Small(int64_t value) {
  return Tensor::FromValues<int64_t>({3}, {value, value, value});
}

// The parameter is the seed of the order in which streams make progress.
class StepArgumentsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  StepArgumentsTest() : machine_({.seed = GetParam()}) {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 16 << 20, .piece_bytes = 1 << 20}});
    EXPECT_OK(device);
    device_ = *std::move(device);
    stream_ = device_->CreateStream().value();
    uploads_ = device_->CreateStream().value();
  }

  std::unique_ptr<StepArguments> Create() {
    auto arguments = StepArguments::Create(
        {kLarge, kSmall, kSmall}, {Use::kUpload, Use::kHost, Use::kNone},
        "test", device_.get(), stream_.get(), uploads_.get());
    EXPECT_OK(arguments);
    return *std::move(arguments);
  }

  Tensor Pinned(const TensorType& type) {
    auto buffer = device_->pinned_memory().Allocate(type.shape.element_count() *
                                                    SizeOf(type.dtype));
    EXPECT_OK(buffer);
    return Tensor(type.dtype, type.shape, *std::move(buffer));
  }

  absl::Status Drain() {
    return stream_->Drain(Clock::Real()->Now() + absl::Minutes(1), "the test");
  }

  SimulatedMachine machine_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceStream> uploads_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, StepArgumentsTest,
                         ::testing::Range<uint64_t>(0, 4));

TEST_P(StepArgumentsTest, TheWorkOfAStepFindsItsOwnArguments) {
  const std::unique_ptr<StepArguments> steps[] = {Create(), Create()};
  std::vector<Tensor> results;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(steps[i]->Stage(
        {Large(static_cast<float>(i)), Small(10 + i), Small(20 + i)}));
    const Tensor& large = (*steps[i])[0];
    EXPECT_FALSE(large.is_on_host());
    EXPECT_EQ((*steps[i])[1].flat<int64_t>()[2], 10 + i);
    EXPECT_FALSE((*steps[i])[2].IsValid());
    results.push_back(Pinned(kLarge));
    ASSERT_OK(stream_->Copy(large, &results.back()));
  }
  ASSERT_OK(Drain());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i].flat<float>().front(), i);
    EXPECT_EQ(results[i].flat<float>().back(), i);
  }
}

TEST_P(StepArgumentsTest, PinnedMemoryIsUsedInPlaceUntilItIsReleased) {
  const std::unique_ptr<StepArguments> step = Create();
  Tensor large = Pinned(kLarge);
  Tensor small = Pinned(kSmall);
  const int64_t pinned = machine_.counts()["cuMemHostAlloc"];
  ASSERT_OK(step->Stage({large, small, Small(0)}));
  EXPECT_EQ(machine_.counts()["cuMemHostAlloc"], pinned);
  EXPECT_EQ((*step)[1].address(), small.address());
  EXPECT_FALSE(large.IsSoleOwner());
  ASSERT_OK(Drain());
  step->Release();
  EXPECT_TRUE(large.IsSoleOwner());
  EXPECT_TRUE(small.IsSoleOwner());
}

TEST_P(StepArgumentsTest, AFailedUploadReleasesTheArguments) {
  const std::unique_ptr<StepArguments> step = Create();
  Tensor large = Pinned(kLarge);
  machine_.Fail("cuEventRecord", driver::kInvalidValue);
  EXPECT_FALSE(step->Stage({large, Small(1), Small(2)}).ok());
  EXPECT_TRUE(large.IsSoleOwner());
  large.mutable_flat<float>()[0] = 5;
  ASSERT_OK(step->Stage({large, Small(1), Small(2)}));
  Tensor result = Pinned(kLarge);
  ASSERT_OK(stream_->Copy((*step)[0], &result));
  ASSERT_OK(Drain());
  EXPECT_EQ(result.flat<float>()[0], 5);
}

}  // namespace
}  // namespace muster
