#include "common/compute/runtime/step_clock.h"

#include <memory>

#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);

void Spin(absl::Duration duration) {
  const absl::Time end = Clock::Real()->Now() + duration;
  EXPECT_TRUE(AwaitTrue([&] { return Clock::Real()->Now() >= end; }));
}

class StepClockTest : public ::testing::Test {
 protected:
  StepClockTest() : machine_({}) {
    device_ =
        Device::Create(&machine_.driver(), {.memory = {.limit_bytes = 8 << 20}})
            .value();
    stream_ = device_->CreateStream().value();
    clock_ = StepClock::Create(device_.get(), stream_.get(), 2).value();
  }

  // Runs a step whose work takes `work` on the simulated device, while the host
  // waits.
  void RunStep(absl::Duration work) {
    ASSERT_OK(clock_->BeginStep());
    Drain();
    Spin(work);
    ASSERT_OK(clock_->EndStep());
    Drain();
    ASSERT_OK(clock_->FinishStep());
  }
  void Drain() {
    ASSERT_OK(stream_->Drain(Clock::Real()->Now() + absl::Seconds(60), "test"));
  }

  SimulatedMachine machine_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<StepClock> clock_;
};

TEST_F(StepClockTest, TimeBetweenStepsIsIdle) {
  RunStep(kPause);
  EXPECT_EQ(clock_->times().total, absl::ZeroDuration());
  Spin(kPause);
  RunStep(kPause);
  EXPECT_GE(clock_->times().idle, kPause);
  EXPECT_GE(clock_->times().total - clock_->times().idle, kPause);
}

TEST_F(StepClockTest, TimeBeforeARestartDoesNotCount) {
  RunStep(absl::ZeroDuration());
  clock_->Restart();
  Spin(kPause);
  RunStep(absl::ZeroDuration());
  EXPECT_EQ(clock_->times().total, absl::ZeroDuration());
  RunStep(absl::ZeroDuration());
  EXPECT_GT(clock_->times().total, absl::ZeroDuration());
}

// The end of a step is measured when the next one is finished, because its
// updates may run until then.
TEST_F(StepClockTest, MeasuresTwoOverlappingSteps) {
  ASSERT_OK(clock_->BeginStep());
  ASSERT_OK(clock_->EndStep());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(clock_->BeginStep());
    ASSERT_OK(clock_->EndStep());
    Drain();
    ASSERT_OK(clock_->FinishStep());
  }
  EXPECT_GE(clock_->times().total, clock_->times().idle);
}

}  // namespace
}  // namespace muster
