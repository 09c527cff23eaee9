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

// The life of a process that trains, as against one that serves: says in its
// first line who it is, runs `train`, and sees the job's end through. SIGTERM
// and SIGINT interrupt the task, so this is called before any thread is
// started.
//
// Returns what `train` returned; the status carries the exit code
// (ExitCodeOf()), that of the signal when one ended training.
absl::Status TrainTask(TaskOptions options, const TaskIdentity& identity,
                       Network* network, TrainFunction train);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_TRAIN_TASK_H_
