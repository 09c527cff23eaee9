#ifndef DEPLOY_LAUNCH_KUBERNETES_POD_H_
#define DEPLOY_LAUNCH_KUBERNETES_POD_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/net/cluster/task_id.h"
#include "deploy/launch/engine_job.h"
#include "deploy/launch/manifest_options.h"

namespace muster {

// Names such as $IMAGE in the text of a manifest, and the texts that replace
// them.
using Replacements = std::vector<std::pair<absl::string_view, std::string>>;

// The pods of one role.
struct PodRole {
  TaskType type = TaskType::kWorker;
  int count = 0;
  std::string container;  // The name of the container.
};

// Returns the spec of an Indexed Job of these pods, indented by two spaces.
// `replacements` contains those that are the same for all roles: $NAME,
// $SERVICE, $IMAGE, $PORT, $STATUS_PORT, $CPUS and $MEMORY.
std::string KubernetesJobSpec(const EngineJob& job, const PodRole& role,
                              const PodFolders& folders,
                              const ManifestOptions& options,
                              Replacements replacements);

// Returns `text` as a double-quoted scalar of YAML.
std::string YamlString(absl::string_view text);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_KUBERNETES_POD_H_
