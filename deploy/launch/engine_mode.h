#ifndef DEPLOY_LAUNCH_ENGINE_MODE_H_
#define DEPLOY_LAUNCH_ENGINE_MODE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// `launch --slurm` and `launch --kubernetes`: their flags, and what they print.

// True if there is such a flag and it is not at its default.
bool IsGiven(absl::string_view name);

// True if one of the flags is on the command line, which then may have every
// flag of the tasks.
bool IsEngineMode(absl::Span<const std::string> arguments);

// True if one of the flags is set.
bool EngineModeWanted();

// Checks that no flag is set that means nothing on this machine.
//   kInvalidArgument  one is; names it
absl::Status ExpectNoEngineFlags();

// The names of the flags, in the order of --help.
std::vector<std::string> EngineFlags();

// The values of launch's other flags.
struct EngineSettings {
  bool tls = false;
  std::optional<int> restart_count_max;  // Unset: the engine's default.
  // --bin_dir: where Muster's executables lie on the nodes. Empty: where those
  // of this machine do.
  std::string bin_dir;
};

// Returns the batch script or the manifests that run `plan`, as the flags say.
// Relative paths in `plan` count from the working directory. Every flag of the
// tasks that is set goes into their environment.
//
//   kInvalidArgument  both flags are set, neither TLS nor --insecure is, the
//                     job file cannot be read, or a flag is invalid or cannot
//                     be the same for all tasks
//   kNotFound         musterctl is missing, which makes certificates
absl::StatusOr<std::string> EngineText(ClusterPlan plan,
                                       const EngineSettings& settings);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_ENGINE_MODE_H_
