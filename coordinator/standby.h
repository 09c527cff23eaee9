#ifndef COORDINATOR_STANDBY_H_
#define COORDINATOR_STANDBY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/process/task_options.h"

namespace muster {

// Checks that a coordinator with these options can stand by (--standby).
//   kInvalidArgument  names what is missing
absl::Status CheckStandby(const TaskOptions& options);

// Blocks while another coordinator leads the job. Returns true if this process
// is to lead the job now, with changed options, and false if the job has ended
// with success. Requires CheckStandby(), and that SIGTERM and SIGINT are
// blocked.
//   kAborted    the job has ended otherwise; with its exit code
//   kCancelled  a signal has arrived; with its exit code
//   others      as CoordinatorJournal::ReadEnd()
absl::StatusOr<bool> StandBy(TaskOptions* options);

}  // namespace muster

#endif  // COORDINATOR_STANDBY_H_
