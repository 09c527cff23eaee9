#ifndef COMMON_COMPUTE_OPTIMIZERS_SCHEDULE_KIND_H_
#define COMMON_COMPUTE_OPTIMIZERS_SCHEDULE_KIND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/learning_rate_schedules.h"

namespace muster {

namespace proto {
class LearningRateSchedule;
}  // namespace proto

// A row of the table of schedules. The `schedule` arguments of its functions
// must be complete and of this kind.
struct ScheduleKind {
  // A proto::LearningRateSchedule::KindCase: the field of the kind.
  int kind_case;
  absl::string_view keras_class;  // Such as "CosineDecay".
  // Returns a schedule in which every optional argument has its default.
  LearningRateSchedule (*defaults)();
  //   kInvalidArgument  an argument is out of range; the message names it
  absl::Status (*check)(const proto::LearningRateSchedule& schedule);
  // Returns the rate, computed in float32 as in Keras. `step` must be at least
  // 0.
  float (*rate_at)(const proto::LearningRateSchedule& schedule, int64_t step);
};

absl::Span<const ScheduleKind> ScheduleKinds();

// Returns null if `schedule` sets no kind.
const ScheduleKind* FindScheduleKind(
    const proto::LearningRateSchedule& schedule);

// Returns `schedule` with Keras' defaults for absent arguments.
//   kInvalidArgument  no kind is set, a required argument is missing, or an
//                     argument is out of range; the message names the schedule
//                     and the argument
absl::StatusOr<proto::LearningRateSchedule> CompleteSchedule(
    const proto::LearningRateSchedule& schedule);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_SCHEDULE_KIND_H_
