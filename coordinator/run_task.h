#ifndef COORDINATOR_RUN_TASK_H_
#define COORDINATOR_RUN_TASK_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_options.h"
#include "common/net/process/train_task.h"

namespace muster {

// All that a program's main() does. The same program is started in every role,
// and TF_CONFIG decides what it becomes: where there are parameter servers, a
// `ps` or `worker` task serves until the job is over, and the chief runs
// `train`. Where there are workers only, every one of them runs `train`, side
// by side. Without TF_CONFIG, `train` runs in this one process.
//
// `settings` are the names that --set may give a value, which Task::flag()
// returns:
//
//   return RunTask(argc, argv, Train, {{"epochs", "5", "How many epochs."}});
//
// If `train` fails, the other tasks end too, with its reason, also when it
// fails before it has made a strategy: they are told within a few seconds.
//
// Handles the flags of every role (--help), SIGTERM and SIGINT, prints errors,
// and returns the exit code: 0; 1 when training failed; 2 for a mistake in
// flags, settings or TF_CONFIG; 143 after SIGTERM.
int RunTask(int argc, char** argv, TrainFunction train,
            std::vector<Setting> settings = {});

// The same for a program that has more to say about itself, and more to ask of
// its options (`check`).
int RunTask(const ProgramInfo& program, int argc, char** argv,
            absl::FunctionRef<absl::Status(const TaskOptions&)> check,
            TrainFunction train);

}  // namespace muster

#endif  // COORDINATOR_RUN_TASK_H_
