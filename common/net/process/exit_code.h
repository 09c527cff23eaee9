#ifndef COMMON_NET_PROCESS_EXIT_CODE_H_
#define COMMON_NET_PROCESS_EXIT_CODE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The exit code of a process. Job operators (such as Kubeflow's) restart a task
// with a code of 128 or more, and end the job after any lower code.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,        // A restart would fail again.
  kUsage = 2,          // The flags, TF_CONFIG or job file are invalid.
  kRestartMe = 138,    // A new process of this task may continue.
  kInterrupted = 130,  // Ended by SIGINT.
  kTerminated = 143,   // Ended by SIGTERM.
};

// Returns `status` with `code` attached as the exit code of the process. An OK
// status is returned unchanged.
absl::Status WithExitCode(absl::Status status, ExitCode code);

// Returns the exit code for `status`: kOk for an OK status, and kFailure for an
// error without an exit code.
ExitCode ExitCodeOf(const absl::Status& status);

// Returns the exit code of the other tasks of a job if its coordinator ends
// with `code`. This is kRestartMe if a signal ended the coordinator or if it
// requests a restart, because a restarted coordinator needs the other tasks.
// Otherwise it is `code`.
ExitCode ExitCodeOfOthers(ExitCode code);

// Returns the status of a task whose coordinator has requested it to exit with
// `exit_code`: OK for 0, otherwise kAborted with that exit code and `reason`.
absl::Status JobEndStatus(int exit_code, absl::string_view reason);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_EXIT_CODE_H_
