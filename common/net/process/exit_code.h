#ifndef COMMON_NET_PROCESS_EXIT_CODE_H_
#define COMMON_NET_PROCESS_EXIT_CODE_H_

#include "absl/status/status.h"

namespace muster {

// How a process ends. Job operators restart a task from 128 upwards and give
// the job up below.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,        // Trying again would meet the same.
  kUsage = 2,          // The flags, TF_CONFIG or job file make no sense.
  kRestartMe = 138,    // A new process in this place may go on.
  kInterrupted = 130,  // SIGINT was obeyed.
  kTerminated = 143,   // SIGTERM was obeyed.
};

// `status`, for which a process is to end with `code`. An OK status stays as it
// is.
absl::Status WithExitCode(absl::Status status, ExitCode code);

// kOk for an OK status, kFailure for one that never met WithExitCode().
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_EXIT_CODE_H_
