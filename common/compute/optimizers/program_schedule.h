#ifndef COMMON_COMPUTE_OPTIMIZERS_PROGRAM_SCHEDULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_PROGRAM_SCHEDULE_H_

#include "common/compute/optimizers/schedule_kind.h"

namespace muster {

// The kind of schedules of the user's own: programs that JAX has exported, from
// the number of gradients before this one, int32[], to the learning rate,
// float32[]. Not in ScheduleKinds(), because Keras has no such class. The
// plugin of the process compiles a program once and keeps it.
//
// check:
//   kInvalidArgument  not such a program
//   other codes       as EvaluateProgram()
// rate_at: if the program fails, although `check` has run it, the process ends.
extern const ScheduleKind kProgramScheduleKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_PROGRAM_SCHEDULE_H_
