#ifndef COMMON_NET_PROCESS_EXIT_CODE_H_
#define COMMON_NET_PROCESS_EXIT_CODE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// How a process ends. Job operators restart a task from 128 upwards and give
// the job up below.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,        // Would fail again.
  kUsage = 2,          // The flags, TF_CONFIG or job file are invalid.
  kRestartMe = 138,    // A new process in this place may continue.
  kInterrupted = 130,  // Ended by SIGINT.
  kTerminated = 143,   // Ended by SIGTERM.
};

// `status`, for which a process is to end with `code`. An OK status stays as it
// is.
absl::Status WithExitCode(absl::Status status, ExitCode code);

// kOk for an OK status, kFailure for one that never met WithExitCode().
ExitCode ExitCodeOf(const absl::Status& status);

// The exit code of the other tasks of a job when its coordinator ends with
// `code`: the same, but a coordinator that a signal has ended or that asks to
// be started again may come back, and then needs them: kRestartMe.
ExitCode ExitCodeOfOthers(ExitCode code);

// The status of a task that its coordinator has told to exit with `exit_code`,
// for this reason: OK for 0, or kAborted with that exit code.
absl::Status JobEndStatus(int exit_code, absl::string_view reason);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_EXIT_CODE_H_
