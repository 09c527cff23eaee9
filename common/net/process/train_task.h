#ifndef COMMON_NET_PROCESS_TRAIN_TASK_H_
#define COMMON_NET_PROCESS_TRAIN_TASK_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"

namespace muster {

class Network;

using TrainFunction = absl::FunctionRef<absl::Status(Task&)>;
// Tells the other tasks of a cluster about Task::failure().
using NotifyFunction = absl::FunctionRef<void(Task&)>;

// Runs a task that trains: logs the start line, runs `train`, and ends the job.
// SIGTERM and SIGINT interrupt the task, so call this before any thread is
// started. If `train` fails before a strategy has connected to the other tasks
// of the cluster, calls `notify_others`, because they still wait for this task.
//
// Returns the status that `train` returned, with the exit code of the process
// (ExitCodeOf()). If a signal ended training, that is the signal's exit code.
absl::Status TrainTask(TaskOptions options, const TaskIdentity& identity,
                       Network* network, TrainFunction train,
                       NotifyFunction notify_others);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TRAIN_TASK_H_
