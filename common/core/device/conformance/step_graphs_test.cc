// Tests that steps have the same results with graphs as without, whatever they
// enqueue and whichever calls fail. Runs on simulated GPUs, and on the GPUs of
// this machine if it has any.

#include "common/core/device/step_graphs.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/conformance/device_test_kernels_image.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/driver/real_driver.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kCount = 100;
constexpr size_t kBytes = kCount * sizeof(float);

struct Backend {
  std::string name;
  bool is_real = false;
  simulated::Order order = simulated::Order::kAtWait;
};

class StepGraphsTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    const driver::DriverApi* api = nullptr;
    if (GetParam().is_real) {
      const auto driver = RealDriver();
      if (!driver.ok()) GTEST_SKIP() << driver.status();
      api = *driver;
    } else {
      machine_ = std::make_unique<SimulatedMachine>(
          SimulatedMachine::Options{.order = GetParam().order, .seed = 5});
      api = &machine_->driver();
    }
    ASSERT_OK_AND_ASSIGN(
        device_, Device::Create(api, {.memory = {.limit_bytes = 16 << 20,
                                                 .piece_bytes = 2 << 20},
                                      .captures_steps = true}));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
    ASSERT_OK_AND_ASSIGN(event_, device_->CreateEvent());
    for (std::shared_ptr<Buffer>& buffer : on_device_) {
      ASSERT_OK_AND_ASSIGN(buffer,
                           device_->memory().Allocate(kBytes, {"x", "test"}));
    }
    for (std::shared_ptr<Buffer>& buffer : pinned_) {
      ASSERT_OK_AND_ASSIGN(buffer, device_->pinned_memory().Allocate(kBytes));
    }
    graphs_ = std::make_unique<StepGraphs>(device_.get(), stream_.get());
  }
  void TearDown() override {
    if (stream_ != nullptr) (void)Await();
    graphs_ = nullptr;
  }

  absl::Status Await() {
    return stream_->Drain(Clock::Real()->Now() + absl::Seconds(60), "a test");
  }
  uint8_t* memory(int i) { return on_device_[i]->data(); }
  float* pinned(int i) { return reinterpret_cast<float*>(pinned_[i]->data()); }

  // memory(to) += factor * memory(from)
  absl::Status ScaleAdd(int from, float factor, int to) {
    ASSIGN_OR_RETURN(const KernelFunction kernel,
                     device_->FindKernel(internal::device_test_kernels_image(),
                                         "scale_add"));
    const uint8_t* const x = memory(from);
    uint8_t* const y = memory(to);
    const int count = kCount;
    const KernelArgument arguments[] = {&x, &y, &factor, &count};
    return stream_->Launch(kernel, {.block = {128, 1, 1}}, arguments);
  }

  // Adds `value` * (1 + factor) to memory 1, through memories 0 and 2.
  absl::Status AddStep(int slot, float value, float factor) {
    for (int i = 0; i < kCount; ++i) pinned(slot)[i] = value;
    RETURN_IF_ERROR(stream_->Copy(pinned(slot), memory(0), kBytes));
    RETURN_IF_ERROR(stream_->Fill(memory(2), 0, kBytes));
    RETURN_IF_ERROR(ScaleAdd(0, 1, 2));
    RETURN_IF_ERROR(ScaleAdd(0, factor, 2));
    return ScaleAdd(2, 1, 1);
  }

  absl::Status Step(absl::FunctionRef<absl::Status()> work) {
    graphs_->BeginStep();
    absl::Status status = work();
    status.Update(graphs_->EndStep());
    return status;
  }

  // Runs steps `begin` to `end` - 1, which alternate between two host buffers.
  // Step i adds i * (1 + i / 4).
  void RunSteps(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      ASSERT_OK(Step([&] {
        return AddStep(i % 2, static_cast<float>(i), static_cast<float>(i) / 4);
      }));
      wanted_ += static_cast<float>(i) * (1 + static_cast<float>(i) / 4);
      // At most two steps are in flight.
      if (i % 2 == 1) {
        ASSERT_OK(Await());
      }
    }
    ASSERT_OK(Await());
  }
  void Reset() {
    wanted_ = 0;
    ASSERT_OK(stream_->Fill(memory(1), 0, kBytes));
  }
  void ExpectSum() {
    ASSERT_OK(stream_->Copy(memory(1), pinned(2), kBytes));
    ASSERT_OK(Await());
    EXPECT_THAT(std::vector<float>(pinned(2), pinned(2) + kCount),
                Each(wanted_));
  }

  int64_t launches() { return device_->graph_counters().launches; }
  int64_t captures() { return device_->graph_counters().captures; }
  int64_t refusals() { return device_->graph_counters().refusals; }

  std::unique_ptr<SimulatedMachine> machine_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
  std::shared_ptr<Buffer> on_device_[3];
  std::shared_ptr<Buffer> pinned_[3];
  std::unique_ptr<StepGraphs> graphs_;
  float wanted_ = 0;
};

INSTANTIATE_TEST_SUITE_P(
    Drivers, StepGraphsTest,
    ::testing::Values(Backend{.name = "AtWait"},
                      Backend{.name = "Threads",
                              .order = simulated::Order::kThreads},
                      Backend{.name = "Real", .is_real = true}),
    [](const auto& info) { return info.param.name; });

TEST_P(StepGraphsTest, StepsThatRepeatAreOneLaunchWithTheirOwnValues) {
  Reset();
  RunSteps(0, StepGraphs::kStepsBeforeCapture);
  EXPECT_EQ(captures(), 0);
  RunSteps(StepGraphs::kStepsBeforeCapture, 12);
  ExpectSum();
  EXPECT_EQ(captures(), 1);
  EXPECT_EQ(launches(), 12 - StepGraphs::kStepsBeforeCapture);
  EXPECT_EQ(refusals(), 0);
  // Each later launch updates two nodes: the host address of the copy, and the
  // factor of a kernel.
  EXPECT_EQ(device_->graph_counters().updates, 2 * (launches() - 1));
}

TEST_P(StepGraphsTest, SteadyStepMakesFewCalls) {
  if (GetParam().is_real) GTEST_SKIP() << "only simulated drivers count";
  Reset();
  RunSteps(0, 4);
  const auto before = machine_->counts();
  ASSERT_OK(Step([&] { return AddStep(0, 4, 1); }));
  auto calls = machine_->counts();
  for (const auto& [function, count] : before) calls[function] -= count;
  EXPECT_EQ(calls["cuGraphLaunch"], 1);
  for (const char* function :
       {"cuLaunchKernelEx", "cuMemcpyAsync", "cuMemsetD8Async",
        "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"}) {
    EXPECT_EQ(calls[function], 0) << function;
  }
}

TEST_P(StepGraphsTest, ADifferentStepIsEnqueuedWithoutAGraph) {
  Reset();
  RunSteps(0, 5);
  const int64_t before = launches();
  // One step differs at its end, one in the middle, and one is shorter.
  ASSERT_OK(Step([&]() -> absl::Status {
    RETURN_IF_ERROR(AddStep(0, 1, 1));
    return ScaleAdd(2, 1, 1);
  }));
  wanted_ += 4;
  ASSERT_OK(Await());
  ASSERT_OK(Step([&]() -> absl::Status {
    RETURN_IF_ERROR(stream_->Copy(pinned(0), memory(0), kBytes));
    return ScaleAdd(0, 3, 1);
  }));
  wanted_ += 3;
  ASSERT_OK(Await());
  ASSERT_OK(Step([&] { return stream_->Copy(pinned(0), memory(0), kBytes); }));
  EXPECT_EQ(launches(), before);
  RunSteps(5, 8);
  EXPECT_EQ(launches(), before + 3);
  ExpectSum();
}

TEST_P(StepGraphsTest, AlternatingVariantsHaveAGraphEach) {
  Reset();
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK(Step([&]() -> absl::Status {
      RETURN_IF_ERROR(AddStep(0, 1, 1));
      if (i % 3 == 0) RETURN_IF_ERROR(ScaleAdd(2, 1, 1));
      return absl::OkStatus();
    }));
    wanted_ += i % 3 == 0 ? 4 : 2;
    ASSERT_OK(Await());
  }
  ExpectSum();
  EXPECT_EQ(captures(), 2);
  EXPECT_EQ(launches(), 12 - 2 * StepGraphs::kStepsBeforeCapture);
}

TEST_P(StepGraphsTest, EventsAndPageableMemoryDivideASegment) {
  Reset();
  for (int i = 0; i < 6; ++i) {
    ASSERT_OK(Step([&]() -> absl::Status {
      // A segment with a single launch is not captured.
      RETURN_IF_ERROR(ScaleAdd(1, 0, 1));
      RETURN_IF_ERROR(stream_->Record(event_.get()));
      RETURN_IF_ERROR(AddStep(0, 1, 1));
      RETURN_IF_ERROR(stream_->Record(event_.get()));
      RETURN_IF_ERROR(stream_->Await(
          *event_, Clock::Real()->Now() + absl::Seconds(60), "a segment"));
      std::vector<float> pageable(kCount, static_cast<float>(i));
      RETURN_IF_ERROR(stream_->Copy(pageable.data(), memory(0), kBytes));
      pageable.assign(kCount, -1);
      RETURN_IF_ERROR(ScaleAdd(0, 1, 1));
      RETURN_IF_ERROR(ScaleAdd(0, 1, 1));
      RETURN_IF_ERROR(stream_->Wait(*event_));
      return ScaleAdd(0, 1, 1);
    }));
    wanted_ += 2 + 3 * static_cast<float>(i);
  }
  ExpectSum();
  // The last launch of a step is alone in its segment, which is not captured.
  EXPECT_EQ(captures(), 2);
  EXPECT_EQ(launches(), 2 * (6 - StepGraphs::kStepsBeforeCapture));
}

TEST_P(StepGraphsTest, NoStepIsLostWhenTheDriverRefuses) {
  if (GetParam().is_real) GTEST_SKIP() << "real drivers do not fail on demand";
  for (const char* function :
       {"cuStreamBeginCapture_v2", "cuStreamGetCaptureInfo_v3",
        "cuStreamEndCapture", "cuGraphMemcpyNodeGetParams",
        "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2",
        "cuGraphExecMemcpyNodeSetParams", "cuGraphLaunch"}) {
    for (const int after : {0, 1}) {
      SCOPED_TRACE(function);
      ASSERT_OK(Await());
      graphs_ = std::make_unique<StepGraphs>(device_.get(), stream_.get());
      Reset();
      const int64_t before = refusals();
      machine_->Fail(function, driver::kOutOfMemory, after);
      RunSteps(0, 10);
      ExpectSum();
      // Functions that capture a graph are called only once, so they do not
      // fail if `after` is 1.
      EXPECT_LE(refusals() - before, 1);
      EXPECT_TRUE(refusals() > before || after > 0);
      EXPECT_OK(device_->health());
      // Removes a fault that has not been returned.
      machine_->Fail(function, driver::kSuccess);
    }
  }
}

TEST_P(StepGraphsTest, KernelErrorsAreThoseOfWorkWithoutGraphs) {
  if (GetParam().is_real) GTEST_SKIP() << "it would lose the GPU";
  Reset();
  RunSteps(0, 4);
  machine_->Fail("cuGraphLaunch", driver::kLaunchFailed, 0, true);
  const absl::Status status = Step([&] { return AddStep(0, 4, 1); });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("cuMemcpyAsync failed: "
                                         "CUDA_ERROR_LAUNCH_FAILED")));
  EXPECT_TRUE(status.GetPayload(kDeviceLostUrl).has_value());
}

TEST_P(StepGraphsTest, WorkHeldBackIsEnqueuedAlsoWhenAStepFails) {
  Reset();
  RunSteps(0, 4);
  EXPECT_EQ(Step([&]() -> absl::Status {
              RETURN_IF_ERROR(AddStep(0, 4, 1));
              return absl::CancelledError("by a test");
            }),
            absl::CancelledError("by a test"));
  wanted_ += 8;
  ExpectSum();
}

}  // namespace
}  // namespace muster
