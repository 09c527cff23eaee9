#ifndef WORKER_SERVE_WORKER_H_
#define WORKER_SERVE_WORKER_H_

#include "absl/status/status.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"

namespace muster {

// Runs a worker until its job ends. The first log line names the task, the last
// one the reason for the end. Handles SIGTERM and SIGINT, so it must be called
// before any thread is started.
//
// The status carries the exit code (ExitCodeOf()).
//   kUnavailable       the address is in use, or the coordinator is lost
//   kDeadlineExceeded  no coordinator connected in time; kRestartMe
//   kInvalidArgument   a coordinator with another TF_CONFIG connected
//   kAborted           the coordinator reports that the job has failed
//   kCancelled         a signal ended the process
absl::Status ServeWorker(const TaskOptions& options,
                         const TaskIdentity& identity, Network* network);

}  // namespace muster

#endif  // WORKER_SERVE_WORKER_H_
