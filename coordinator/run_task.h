#ifndef COORDINATOR_RUN_TASK_H_
#define COORDINATOR_RUN_TASK_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_options.h"
#include "common/net/process/train_task.h"

namespace muster {

// The complete main() of a training program. The same program is started in
// every role, which TF_CONFIG determines. In a cluster with parameter servers,
// a `ps` or `worker` task serves until the job ends, and the chief runs
// `train`. In a cluster of workers only, every worker runs `train`
// concurrently. Without TF_CONFIG, `train` runs in this process alone.
//
// `settings` are the names to which --set can assign values; Task::flag()
// returns the values:
//
//   return RunTask(argc, argv, Train, {{"epochs", "5", "How many epochs."}});
//
// If `train` fails, the other tasks also end, with its reason. They are told
// within a few seconds, even if `train` fails before it has created a strategy.
//
// Handles the flags of every role (--help), SIGTERM and SIGINT, prints errors,
// and returns the exit code: 0 on success; 1 if training failed; 2 for an error
// in flags, settings or TF_CONFIG; 143 after SIGTERM.
int RunTask(int argc, char** argv, TrainFunction train,
            std::vector<Setting> settings = {});

// As above, for a program with its own description, and with further conditions
// on its options (`check`).
int RunTask(const ProgramInfo& program, int argc, char** argv,
            absl::FunctionRef<absl::Status(const TaskOptions&)> check,
            TrainFunction train);

}  // namespace muster

#endif  // COORDINATOR_RUN_TASK_H_
