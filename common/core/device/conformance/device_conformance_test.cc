// Checks the contracts of devices, streams, events and memory with every
// driver: simulated GPUs with each Order, and the GPUs of this machine if it
// has any.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/conformance/device_test_kernels_image.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/real_driver.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/page_memory.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kLimitBytes = 16 << 20;

absl::Time Soon() { return Clock::Real()->Now() + absl::Seconds(60); }

struct Backend {
  std::string name;
  bool is_real = false;
  simulated::Order order = simulated::Order::kAtWait;
  uint64_t seed = 0;
};

class DeviceConformanceTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    const driver::DriverApi* api = nullptr;
    if (GetParam().is_real) {
      const auto driver = RealDriver();
      if (!driver.ok()) GTEST_SKIP() << driver.status();
      api = *driver;
    } else {
      machine_ = std::make_unique<SimulatedMachine>(SimulatedMachine::Options{
          .order = GetParam().order, .seed = GetParam().seed});
      api = &machine_->driver();
    }
    ASSERT_OK_AND_ASSIGN(
        device_, Device::Create(api, {.memory = {.limit_bytes = kLimitBytes,
                                                 .piece_bytes = 2 << 20}}));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
  }

  Tensor OnDevice(int64_t count, absl::string_view name = "test") {
    auto buffer =
        device_->memory().Allocate(count * sizeof(float), {"tensor", name});
    EXPECT_OK(buffer);
    return Tensor(DType::kFloat32, {count}, *std::move(buffer));
  }
  Tensor Pinned(int64_t count) {
    auto buffer = device_->pinned_memory().Allocate(count * sizeof(float));
    EXPECT_OK(buffer);
    return Tensor(DType::kFloat32, {count}, *std::move(buffer));
  }
  Tensor Upload(const Tensor& host) {
    Tensor tensor = OnDevice(host.element_count());
    EXPECT_OK(stream_->Copy(host, &tensor));
    return tensor;
  }
  Tensor Download(const Tensor& tensor) {
    Tensor host(tensor.dtype(), tensor.shape());
    EXPECT_OK(stream_->Copy(tensor, &host));
    return host;
  }
  // y += factor * x
  absl::Status ScaleAdd(DeviceStream* stream, const Tensor& x, float factor,
                        Tensor* y) {
    auto kernel =
        device_->FindKernel(internal::device_test_kernels_image(), "scale_add");
    if (!kernel.ok()) return kernel.status();
    const uint8_t* from = x.address();
    uint8_t* to = y->address();
    int count = static_cast<int>(x.element_count());
    const KernelArgument arguments[] = {&from, &to, &factor, &count};
    return stream->Launch(
        *kernel,
        {.grid = {static_cast<uint32_t>(count + 127) / 128, 1, 1},
         .block = {128, 1, 1}},
        arguments);
  }

  std::unique_ptr<SimulatedMachine> machine_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
};

INSTANTIATE_TEST_SUITE_P(
    Drivers, DeviceConformanceTest,
    ::testing::Values(Backend{.name = "AtWait"},
                      Backend{.name = "AtWaitSeed7", .seed = 7},
                      Backend{.name = "Threads",
                              .order = simulated::Order::kThreads},
                      Backend{.name = "Real", .is_real = true}),
    [](const auto& info) { return info.param.name; });

TEST_P(DeviceConformanceTest, DescribesItself) {
  EXPECT_EQ(device_->name(), "gpu:0");
  EXPECT_THAT(device_->description().ToString(),
              AllOf(HasSubstr("gpu:0: "), HasSubstr("sm_")));
  EXPECT_GE(device_->description().multiprocessor_count, 1);
  EXPECT_EQ(device_->description().is_simulated, !GetParam().is_real);
  EXPECT_OK(device_->health());
}

TEST_P(DeviceConformanceTest, CopiesThroughDeviceMemory) {
  const Tensor host = Tensor::FromValues<float>({3}, {1, 2, 3});
  const Tensor device = Upload(host);
  EXPECT_FALSE(device.is_on_host());
  Tensor second = OnDevice(3);
  EXPECT_OK(stream_->Copy(device, &second));
  EXPECT_TRUE(BitwiseEqual(Download(second), host));
}

TEST_P(DeviceConformanceTest, PageableMemoryMayChangeAfterTheCopyReturns) {
  Tensor host = Tensor::FromValues<float>({2}, {1, 2});
  const Tensor device = Upload(host);
  host.mutable_flat<float>()[0] = 99;
  EXPECT_THAT(Download(device).flat<float>(), ElementsAre(1, 2));
}

TEST_P(DeviceConformanceTest, MemoryOfAnotherOwnerCanBePinned) {
  // The size is not a multiple of a page.
  constexpr int kCount = 3001;
  const Tensor device = Upload(Tensor::Full(DType::kFloat32, {kCount}, 7));
  const auto pages = AllocatePages(kCount * sizeof(float));
  Tensor host(DType::kFloat32, {kCount}, pages);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const auto pinned,
        device_->pinned_memory().Pin(pages->data(), pages->size_bytes()));
    EXPECT_TRUE(device_->pinned_memory().Contains(pages->data()));
    EXPECT_FALSE(
        device_->pinned_memory().Pin(pages->data(), pages->size_bytes()).ok());
    EXPECT_OK(stream_->Copy(device, &host));
    EXPECT_OK(stream_->Drain(Soon(), "the copy"));
    EXPECT_THAT(host.flat<float>(), Each(7));
  }
  EXPECT_FALSE(device_->pinned_memory().Contains(pages->data()));
  EXPECT_THAT(device_->pinned_memory().Pin(pages->data() + 64, sizeof(float)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page")));
}

TEST_P(DeviceConformanceTest, EmptyCopiesAreNoWork) {
  EXPECT_OK(stream_->Copy(nullptr, nullptr, 0));
  EXPECT_OK(stream_->Fill(nullptr, 0, 0));
}

TEST_P(DeviceConformanceTest, KernelsRunInTheOrderOfTheStream) {
  const Tensor x = Upload(Tensor::FromValues<float>({4}, {1, 2, 3, 4}));
  Tensor y = OnDevice(4);
  EXPECT_OK(stream_->Fill(y.address(), 0, y.size_bytes()));
  EXPECT_OK(ScaleAdd(stream_.get(), x, 2, &y));   // 2x
  EXPECT_OK(ScaleAdd(stream_.get(), y, 1, &y));   // 4x
  EXPECT_OK(ScaleAdd(stream_.get(), x, -1, &y));  // 3x
  EXPECT_THAT(Download(y).flat<float>(), ElementsAre(3, 6, 9, 12));
}

TEST_P(DeviceConformanceTest, EventIsReachedWhenPinnedMemoryIsFilled) {
  const Tensor device = Upload(Tensor::Full(DType::kFloat32, {1000}, 7));
  Tensor pinned = Pinned(1000);
  ASSERT_OK_AND_ASSIGN(const auto event, device_->CreateEvent());
  EXPECT_THAT(event->IsReached(), IsOkAndHolds(true));  // Not recorded.
  EXPECT_OK(stream_->Copy(device, &pinned));
  EXPECT_OK(stream_->Record(event.get()));
  EXPECT_OK(stream_->Await(*event, Soon(), "the copy"));
  EXPECT_THAT(event->IsReached(), IsOkAndHolds(true));
  EXPECT_THAT(pinned.flat<float>(), Each(7));
}

TEST_P(DeviceConformanceTest, TimedEventsMeasureDeviceTime) {
  const Tensor device = Upload(Tensor::Full(DType::kFloat32, {1000}, 7));
  Tensor pinned = Pinned(1000);
  ASSERT_OK_AND_ASSIGN(const auto begin, device_->CreateTimedEvent());
  ASSERT_OK_AND_ASSIGN(const auto end, device_->CreateTimedEvent());
  EXPECT_FALSE(end->TimeSince(*begin).ok());  // Not recorded.
  EXPECT_OK(stream_->Record(begin.get()));
  EXPECT_OK(stream_->Copy(device, &pinned));
  EXPECT_OK(stream_->Record(end.get()));
  EXPECT_OK(stream_->Await(*end, Soon(), "the copy"));
  ASSERT_OK_AND_ASSIGN(const absl::Duration time, end->TimeSince(*begin));
  EXPECT_GE(time, absl::ZeroDuration());
  EXPECT_LT(time, absl::Minutes(1));
  ASSERT_OK_AND_ASSIGN(const auto without_time, device_->CreateEvent());
  EXPECT_OK(stream_->Record(without_time.get()));
  EXPECT_OK(stream_->Await(*without_time, Soon(), "nothing"));
  EXPECT_FALSE(without_time->TimeSince(*begin).ok());
}

TEST_P(DeviceConformanceTest, StreamsWaitForEventsOfOthers) {
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream());
  ASSERT_OK_AND_ASSIGN(const auto event, device_->CreateEvent());
  const Tensor x = Upload(Tensor::Full(DType::kFloat32, {512}, 1));
  Tensor y = OnDevice(512);
  Tensor z = OnDevice(512);
  EXPECT_OK(stream_->Fill(y.address(), 0, y.size_bytes()));
  EXPECT_OK(stream_->Fill(z.address(), 0, z.size_bytes()));
  EXPECT_OK(ScaleAdd(stream_.get(), x, 3, &y));
  EXPECT_OK(stream_->Record(event.get()));
  EXPECT_OK(other->Wait(*event));
  EXPECT_OK(ScaleAdd(other.get(), y, 2, &z));
  Tensor host(DType::kFloat32, {512});
  EXPECT_OK(other->Copy(z, &host));
  EXPECT_THAT(host.flat<float>(), Each(6));
}

TEST_P(DeviceConformanceTest, DrainEndsWithTheLastWork) {
  const Tensor device = Upload(Tensor::Full(DType::kFloat32, {10}, 5));
  Tensor pinned = Pinned(10);
  EXPECT_OK(stream_->Copy(device, &pinned));
  EXPECT_OK(stream_->Drain(Soon(), "the copy"));
  EXPECT_THAT(pinned.flat<float>(), Each(5));
}

TEST_P(DeviceConformanceTest, UnknownKernelIsNotFound) {
  EXPECT_THAT(
      device_->FindKernel(internal::device_test_kernels_image(), "no"),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("device_test_kernels"), HasSubstr("\"no\""))));
}

TEST_P(DeviceConformanceTest, ImageWithoutCodeIsRefused) {
  static const KernelImage image{.name = "empty_image"};
  EXPECT_THAT(device_->FindKernel(image, "scale_add"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("empty_image"), HasSubstr("sm_"))));
}

TEST_P(DeviceConformanceTest, MemoryGrowsAndIsReused) {
  DeviceMemory& memory = device_->memory();
  EXPECT_EQ(memory.report().mapped_bytes, 0);
  {
    const Tensor first = OnDevice(1 << 20);
    EXPECT_EQ(memory.report().current_bytes, 4 << 20);
    EXPECT_EQ(memory.report().mapped_bytes, 4 << 20);
  }
  EXPECT_EQ(memory.report().current_bytes, 0);
  EXPECT_EQ(memory.report().peak_bytes, 4 << 20);
  memory.ResetPeak();
  EXPECT_EQ(memory.report().peak_bytes, 0);
  const Tensor second = OnDevice(1 << 20);
  EXPECT_EQ(memory.report().mapped_bytes, 4 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(OnDevice(1).address()) % 256, 0);
}

TEST_P(DeviceConformanceTest, ExhaustedMemoryNamesItsHolders) {
  const Tensor large = OnDevice(2 << 20, "large");
  const Tensor small = OnDevice(1 << 20, "small");
  const auto refused =
      device_->memory().Allocate(8 << 20, {"arena of graph", "train_step"});
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("gpu:0"),
                             HasSubstr("arena of graph \"train_step\""),
                             HasSubstr("requested 8388608 bytes"),
                             HasSubstr("at most 16777216"),
                             HasSubstr("held by tensor \"large\": 8388608, "
                                       "tensor \"small\": 4194304"))));
  // The device works after the error.
  EXPECT_OK(stream_->Fill(small.address(), 0, small.size_bytes()));
  EXPECT_OK(device_->memory().Allocate(1 << 20, {"after", "it"}));
  EXPECT_OK(stream_->Drain(Soon(), "the fill"));
}

TEST_P(DeviceConformanceTest, FreedMemoryWaitsForTheWorkThatUsesIt) {
  const Tensor source = Upload(Tensor::Full(DType::kFloat32, {2 << 20}, 4));
  Tensor result = Pinned(2 << 20);
  {
    Tensor middle = OnDevice(2 << 20);
    device_->memory().NoteUse(*middle.buffer(), stream_.get());
    EXPECT_OK(stream_->Copy(source, &middle));
    EXPECT_OK(stream_->Copy(middle, &result));
  }
  // Only the memory that was just freed has room for this buffer.
  const Tensor next = OnDevice(2 << 20);
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream());
  EXPECT_OK(other->Fill(next.address(), 0, next.size_bytes()));
  EXPECT_OK(other->Drain(Soon(), "the fill"));
  EXPECT_OK(stream_->Drain(Soon(), "the copies"));
  const auto values = result.flat<float>();
  EXPECT_EQ(std::count(values.begin(), values.end(), 4.0f), 2 << 20);
}

TEST_P(DeviceConformanceTest, MemoryLimitMustFitTheDevice) {
  const driver::DriverApi& api = device_->context().api();
  EXPECT_THAT(
      Device::Create(&api, {.memory = {.limit_bytes = size_t{1} << 50}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("memory limit")));
  EXPECT_THAT(Device::Create(&api, {.ordinal = 99}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("99")));
}

TEST_P(DeviceConformanceTest, WholeLimitCanBeMappedAtOnce) {
  const driver::DriverApi& api = device_->context().api();
  ASSERT_OK_AND_ASSIGN(const auto device,
                       Device::Create(&api, {.name = "gpu:1",
                                             .memory = {.limit_bytes = 8 << 20,
                                                        .maps_all = true}}));
  EXPECT_EQ(device->memory().report().mapped_bytes, 8 << 20);
  EXPECT_EQ(device->memory().report().limit_bytes, 8 << 20);
}

}  // namespace
}  // namespace muster
