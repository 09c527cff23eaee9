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
using TellFunction = absl::FunctionRef<void(Task&)>;

// The life of a process that trains, as against one that serves: says in its
// first line who it is, runs `train`, and sees the job's end through. SIGTERM
// and SIGINT interrupt the task, so this is called before any thread is
// started. If `train` fails before a strategy has connected to the other tasks
// of the cluster, they wait for this one: `tell_others` is called.
//
// Returns what `train` returned; the status carries the exit code
// (ExitCodeOf()), that of the signal when one ended training.
absl::Status TrainTask(TaskOptions options, const TaskIdentity& identity,
                       Network* network, TrainFunction train,
                       TellFunction tell_others);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TRAIN_TASK_H_
