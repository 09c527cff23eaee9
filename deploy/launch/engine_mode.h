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

// `launch --slurm` and `launch --kubernetes`: their flags and their output.

// True if a flag of this name exists and does not have its default value.
bool IsGiven(absl::string_view name);

// True if --slurm or --kubernetes is on the command line, which then accepts
// all flags of tasks.
bool IsEngineMode(absl::Span<const std::string> arguments);

// True if --slurm or --kubernetes is set.
bool EngineModeWanted();

// Checks that no flag is set that applies to engines only.
//   kInvalidArgument  one is set; the message names it
absl::Status ExpectNoEngineFlags();

// Returns the names of the engines' flags, in the order of --help.
std::vector<std::string> EngineFlags();

// The values of launch's other flags.
struct EngineSettings {
  bool tls = false;
  std::optional<int> restart_count_max;  // Unset: the engine's default.
  // --bin_dir: the folder of Muster's executables on the nodes. Empty: the same
  // folder as on this machine.
  std::string bin_dir;
};

// Returns the batch script or the manifests that run `plan`, according to the
// flags. Relative paths in `plan` are relative to the working directory. Flags
// of tasks that are set become part of the tasks' environment.
//
//   kInvalidArgument  both --slurm and --kubernetes are set, neither TLS nor
//                     --insecure is, the job file cannot be read, or a flag is
//                     invalid or cannot be the same for all tasks
//   kNotFound         musterctl, which makes certificates, is missing
absl::StatusOr<std::string> EngineText(ClusterPlan plan,
                                       const EngineSettings& settings);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_ENGINE_MODE_H_
