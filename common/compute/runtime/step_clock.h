#ifndef COMMON_COMPUTE_RUNTIME_STEP_CLOCK_H_
#define COMMON_COMPUTE_RUNTIME_STEP_CLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {

// Measures for how long a device is idle between the steps of one stream, by
// the device's clock. Costs two events for each step. Not thread-safe.
class StepClock {
 public:
  struct Times {
    // Sum of the times from the beginning of a step to that of the next,
    // without those that Restart() excludes.
    absl::Duration total;
    // The part of `total` between the end of a step's work and the next step.
    absl::Duration idle;
  };

  // Supports up to `started_max` steps at a time. `device` and `stream` are
  // borrowed.
  static absl::StatusOr<std::unique_ptr<StepClock>> Create(Device* device,
                                                           DeviceStream* stream,
                                                           int started_max);

  // Called before and after a step's work.
  absl::Status BeginStep();
  absl::Status EndStep();
  // Called for each step, in order, once the device has reached its beginning.
  absl::Status FinishStep();
  // Excludes the time until the next step. Requires that no step is unfinished.
  void Restart() { finished_count_ = begun_count_ = 0; }

  const Times& times() const { return times_; }

 private:
  struct Step {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };

  explicit StepClock(DeviceStream* stream) : stream_(*stream) {}
  Step& StepAt(int64_t number) { return steps_[number % steps_.size()]; }

  DeviceStream& stream_;
  std::vector<Step> steps_;
  int64_t begun_count_ = 0;
  int64_t finished_count_ = 0;
  Times times_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_STEP_CLOCK_H_
