#include "common/compute/runtime/step_clock.h"

#include "absl/memory/memory.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepClock>> StepClock::Create(
    Device* device, DeviceStream* stream, int started_max) {
  auto clock = absl::WrapUnique(new StepClock(stream));
  // One more for the step before them.
  clock->steps_.resize(started_max + 1);
  for (Step& step : clock->steps_) {
    ASSIGN_OR_RETURN(step.begin, device->CreateTimedEvent());
    ASSIGN_OR_RETURN(step.end, device->CreateTimedEvent());
  }
  return clock;
}

absl::Status StepClock::BeginStep() {
  return stream_.Record(StepAt(begun_count_).begin.get());
}

absl::Status StepClock::EndStep() {
  RETURN_IF_ERROR(stream_.Record(StepAt(begun_count_).end.get()));
  ++begun_count_;
  return absl::OkStatus();
}

absl::Status StepClock::FinishStep() {
  const int64_t number = finished_count_++;
  if (number == 0) return absl::OkStatus();
  const Step& before = StepAt(number - 1);
  const Event& begin = *StepAt(number).begin;
  ASSIGN_OR_RETURN(const absl::Duration total, begin.TimeSince(*before.begin));
  ASSIGN_OR_RETURN(const absl::Duration idle, begin.TimeSince(*before.end));
  times_.total += total;
  times_.idle += idle;
  return absl::OkStatus();
}

}  // namespace muster
