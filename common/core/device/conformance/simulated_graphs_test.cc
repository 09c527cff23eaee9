// Tests how simulated GPUs capture graphs: which work is recorded, which calls
// are forbidden during a capture, and the order in which a launch runs its
// nodes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using driver::CaptureMode;

class SimulatedGraphsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 4 << 20, .piece_bytes = 1 << 20}});
    ASSERT_OK(device);
    device_ = *std::move(device);
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
    ASSERT_OK_AND_ASSIGN(other_, device_->CreateStream());
    ASSERT_OK_AND_ASSIGN(event_, device_->CreateEvent());
    ASSERT_OK_AND_ASSIGN(second_event_, device_->CreateEvent());
    ASSERT_OK_AND_ASSIGN(memory_,
                         device_->memory().Allocate(kCells, {"cells", "test"}));
    ASSERT_OK_AND_ASSIGN(pinned_, device_->pinned_memory().Allocate(kCells));
    EXPECT_OK(stream_->Fill(cell(0), 0, kCells));
    Await();
  }

  uint8_t* cell(int i) { return memory_->data() + i; }
  uint8_t* pinned(int i) { return pinned_->data() + i; }
  void Await() {
    for (DeviceStream* const stream : {stream_.get(), other_.get()}) {
      EXPECT_OK(
          stream->Drain(Clock::Real()->Now() + absl::Seconds(60), "a test"));
    }
  }
  std::vector<int> Cells() {
    EXPECT_OK(stream_->Copy(cell(0), pinned(0), kCells));
    Await();
    return {pinned(0), pinned(kCells)};
  }

  driver::Result Begin(CaptureMode mode = CaptureMode::kThreadLocal) {
    return api_.cuStreamBeginCapture_v2(stream_->handle(), mode);
  }
  driver::Result End(DeviceStream& stream) {
    return api_.cuStreamEndCapture(stream.handle(), &graph_);
  }
  driver::Result End() { return End(*stream_); }
  driver::Result Instantiate() {
    return api_.cuGraphInstantiateWithFlags(&exec_, graph_, 0);
  }
  driver::Result Launch() {
    return api_.cuGraphLaunch(exec_, stream_->handle());
  }
  // Returns the last node that `stream_` has captured.
  driver::GraphNodeHandle* LastNode() {
    driver::CaptureStatus status = driver::CaptureStatus::kNone;
    driver::GraphNodeHandle* const* nodes = nullptr;
    size_t count = 0;
    EXPECT_EQ(
        api_.cuStreamGetCaptureInfo_v3(stream_->handle(), &status, nullptr,
                                       nullptr, &nodes, nullptr, &count),
        driver::kSuccess);
    EXPECT_EQ(status, driver::CaptureStatus::kActive);
    EXPECT_EQ(count, 1u);
    return count == 1 ? nodes[0] : nullptr;
  }

  static constexpr int kCells = 4;
  SimulatedMachine machine_{{.seed = GetParam()}};
  const driver::DriverApi& api_ = machine_.driver();
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceStream> other_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<Event> second_event_;
  std::shared_ptr<Buffer> memory_;
  std::shared_ptr<Buffer> pinned_;
  driver::GraphHandle* graph_ = nullptr;
  driver::GraphExecHandle* exec_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Seeds, SimulatedGraphsTest,
                         ::testing::Values(0, 1, 2, 3));

TEST_P(SimulatedGraphsTest, CapturedWorkRunsWhenLaunched) {
  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_OK(stream_->Fill(cell(0), 5, 1));
  EXPECT_OK(stream_->Copy(cell(0), cell(1), 1));
  ASSERT_EQ(End(), driver::kSuccess);
  EXPECT_EQ(Cells(), (std::vector<int>{0, 0, 0, 0}));
  ASSERT_EQ(Instantiate(), driver::kSuccess);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(stream_->Fill(cell(0), 0, kCells));
    ASSERT_EQ(Launch(), driver::kSuccess);
    // The enqueued work has not run yet.
    *pinned(0) = 9;
    EXPECT_OK(stream_->Copy(cell(1), pinned(0), 1));
    EXPECT_EQ(*pinned(0), 9);
    EXPECT_EQ(Cells(), (std::vector<int>{5, 5, 0, 0}));
  }
  EXPECT_EQ(api_.cuGraphExecDestroy(exec_), driver::kSuccess);
  EXPECT_EQ(api_.cuGraphDestroy(graph_), driver::kSuccess);
  EXPECT_EQ(api_.cuGraphDestroy(graph_), driver::kInvalidHandle);
}

TEST_P(SimulatedGraphsTest, NodesRunBehindTheirDependenciesOnly) {
  // 0 -> (1 on the other stream, 2 here) -> 3
  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_OK(stream_->Fill(cell(0), 7, 1));
  EXPECT_OK(stream_->Record(event_.get()));
  EXPECT_OK(other_->Wait(*event_));
  EXPECT_OK(other_->Copy(cell(0), cell(1), 1));
  EXPECT_OK(other_->Record(second_event_.get()));
  EXPECT_OK(stream_->Copy(cell(0), cell(2), 1));
  EXPECT_EQ(End(*other_), driver::kStreamCaptureUnmatched);
  EXPECT_EQ(End(), driver::kStreamCaptureInvalidated);

  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_OK(stream_->Fill(cell(0), 7, 1));
  EXPECT_OK(stream_->Record(event_.get()));
  EXPECT_OK(other_->Wait(*event_));
  EXPECT_OK(other_->Copy(cell(0), cell(1), 1));
  EXPECT_OK(other_->Record(second_event_.get()));
  EXPECT_OK(stream_->Copy(cell(0), cell(2), 1));
  EXPECT_OK(stream_->Wait(*second_event_));
  EXPECT_OK(stream_->Copy(cell(1), cell(3), 1));
  ASSERT_EQ(End(), driver::kSuccess);
  ASSERT_EQ(Instantiate(), driver::kSuccess);
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(stream_->Fill(cell(0), 0, kCells));
    ASSERT_EQ(Launch(), driver::kSuccess);
    EXPECT_EQ(Cells(), (std::vector<int>{7, 7, 7, 7}));
  }
}

TEST_P(SimulatedGraphsTest, WorkThatIsNotJoinedMakesNoGraph) {
  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_OK(stream_->Record(event_.get()));
  EXPECT_OK(other_->Wait(*event_));
  EXPECT_OK(other_->Fill(cell(1), 1, 1));
  EXPECT_EQ(End(), driver::kStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  // Both streams have left the capture.
  EXPECT_OK(other_->Fill(cell(1), 2, 1));
  Await();
  EXPECT_EQ(Cells(), (std::vector<int>{0, 2, 0, 0}));
}

TEST_P(SimulatedGraphsTest, CallsThatMayWaitMakeACaptureInvalid) {
  void* host = nullptr;
  uint64_t handle = 0;
  const driver::AllocationProperties properties;
  const std::vector<std::function<driver::Result()>> forbidden = {
      [&] { return api_.cuStreamSynchronize(stream_->handle()); },
      [&] { return api_.cuMemHostAlloc(&host, 16, 0); },
      [&] { return api_.cuMemCreate(&handle, 2 << 20, &properties, 0); },
      [&] { return api_.cuEventQuery(event_->handle()); },
      [&] {
        uint8_t pageable = 1;
        return api_.cuMemcpyAsync(reinterpret_cast<driver::Address>(cell(0)),
                                  reinterpret_cast<driver::Address>(&pageable),
                                  1, stream_->handle());
      }};
  for (size_t i = 0; i < forbidden.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(Begin(), driver::kSuccess);
    EXPECT_OK(stream_->Fill(cell(0), 1, 1));
    EXPECT_EQ(forbidden[i](), driver::kStreamCaptureUnsupported);
    EXPECT_EQ(api_.cuMemsetD8Async(reinterpret_cast<driver::Address>(cell(0)),
                                   1, 1, stream_->handle()),
              driver::kStreamCaptureInvalidated);
    EXPECT_EQ(End(), driver::kStreamCaptureInvalidated);
    EXPECT_EQ(graph_, nullptr);
    EXPECT_EQ(Cells(), (std::vector<int>{0, 0, 0, 0}));
  }
}

TEST_P(SimulatedGraphsTest, ModeSelectsThreadsThatMustNotWait) {
  const auto query_elsewhere = [&] {
    driver::Result result = driver::kUnknown;
    std::thread([&] {
      result = api_.cuEventQuery(second_event_->handle());
    }).join();
    return result;
  };
  ASSERT_EQ(Begin(CaptureMode::kThreadLocal), driver::kSuccess);
  EXPECT_EQ(query_elsewhere(), driver::kSuccess);
  EXPECT_EQ(End(), driver::kSuccess);
  ASSERT_EQ(Begin(CaptureMode::kGlobal), driver::kSuccess);
  EXPECT_EQ(query_elsewhere(), driver::kStreamCaptureUnsupported);
  EXPECT_EQ(End(), driver::kStreamCaptureInvalidated);
  ASSERT_EQ(Begin(CaptureMode::kRelaxed), driver::kSuccess);
  EXPECT_EQ(api_.cuEventQuery(second_event_->handle()), driver::kSuccess);
  // Events of the capture cannot be queried in any mode.
  EXPECT_OK(stream_->Record(event_.get()));
  EXPECT_EQ(api_.cuEventQuery(event_->handle()), driver::kCapturedEvent);
  EXPECT_EQ(End(), driver::kStreamCaptureInvalidated);
}

TEST_P(SimulatedGraphsTest, CapturesBeginAndEndOnce) {
  EXPECT_EQ(End(), driver::kIllegalState);
  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_EQ(Begin(), driver::kIllegalState);
  driver::Result elsewhere = driver::kSuccess;
  std::thread([&] { elsewhere = End(); }).join();
  EXPECT_EQ(elsewhere, driver::kStreamCaptureWrongThread);
  EXPECT_EQ(End(), driver::kSuccess);
}

TEST_P(SimulatedGraphsTest, AnEventFromOutsideCannotBeWaitedFor) {
  EXPECT_OK(other_->Record(event_.get()));
  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_EQ(api_.cuStreamWaitEvent(stream_->handle(), event_->handle(), 0),
            driver::kStreamCaptureIsolation);
  EXPECT_EQ(End(), driver::kStreamCaptureInvalidated);
}

TEST_P(SimulatedGraphsTest, NodesChangeForLaterLaunches) {
  EXPECT_OK(stream_->Fill(cell(0), 3, 1));
  ASSERT_EQ(Begin(), driver::kSuccess);
  EXPECT_OK(stream_->Copy(cell(0), cell(1), 1));
  driver::GraphNodeHandle* const node = LastNode();
  ASSERT_EQ(End(), driver::kSuccess);
  ASSERT_EQ(Instantiate(), driver::kSuccess);
  driver::CopyNodeParameters copy;
  ASSERT_EQ(api_.cuGraphMemcpyNodeGetParams(node, &copy), driver::kSuccess);
  EXPECT_EQ(copy.from.device, reinterpret_cast<driver::Address>(cell(0)));
  ASSERT_EQ(Launch(), driver::kSuccess);
  copy.to.device = reinterpret_cast<driver::Address>(cell(2));
  ASSERT_EQ(api_.cuGraphExecMemcpyNodeSetParams(exec_, node, &copy,
                                                device_->context().handle()),
            driver::kSuccess);
  // The first launch has not run yet. The change does not affect it.
  EXPECT_EQ(Cells(), (std::vector<int>{3, 3, 0, 0}));
  ASSERT_EQ(Launch(), driver::kSuccess);
  EXPECT_EQ(Cells(), (std::vector<int>{3, 3, 3, 0}));
  copy.to.device = reinterpret_cast<driver::Address>(pinned(0));
  EXPECT_EQ(api_.cuGraphExecMemcpyNodeSetParams(exec_, node, &copy,
                                                device_->context().handle()),
            driver::kInvalidValue);
}

}  // namespace
}  // namespace muster
