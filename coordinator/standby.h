#ifndef COORDINATOR_STANDBY_H_
#define COORDINATOR_STANDBY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"

namespace muster {

// Checks that a coordinator with these options can stand by (--standby).
//   kInvalidArgument  names what is missing
absl::Status CheckStandby(const TaskOptions& options);

// Blocks while another coordinator leads the job. Returns true if this process
// is to lead the job now, with changed options. Returns false if the job is
// over, and sets `end` to its status; then TellTasksOfEnd() follows. Requires
// CheckStandby(), and that SIGTERM and SIGINT are blocked.
//   kCancelled  a signal has arrived; with its exit code
//   others      as CoordinatorJournal::ReadEnd()
absl::StatusOr<bool> StandBy(TaskOptions* options, absl::Status* end);

// Ends the tasks of a job that is over if its coordinator could not tell them.
// Waits for them for a few seconds.
void TellTasksOfEnd(TaskOptions options, const TaskIdentity& identity,
                    Network* network);

}  // namespace muster

#endif  // COORDINATOR_STANDBY_H_
