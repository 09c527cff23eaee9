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

// Measures for how long a device has nothing to do between the steps of one
// stream, by its own clock. Costs a step two events. Not thread-safe.
class StepClock {
 public:
  struct Times {
    // From the beginning of a step to that of the next, of all steps but those
    // behind Restart().
    absl::Duration total;
    // The part of it from the end of the step's work on.
    absl::Duration idle;
  };

  // For up to `started_max` steps under way. `device` and `stream` are
  // borrowed.
  static absl::StatusOr<std::unique_ptr<StepClock>> Create(Device* device,
                                                           DeviceStream* stream,
                                                           int started_max);

  // Called on both sides of a step's work.
  absl::Status BeginStep();
  absl::Status EndStep();
  // Called for each step, in their order, when its beginning has been reached.
  absl::Status FinishStep();
  // The time until the next step does not count. No step is under way.
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
