#ifndef DEPLOY_LAUNCH_ROLE_EXECUTABLE_H_
#define DEPLOY_LAUNCH_ROLE_EXECUTABLE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// True if `arguments` contain --task.
bool IsTaskMode(absl::Span<const std::string> arguments);

// Returns the name of the stock executable for the task of `config`, as
// ExecutableFor().
std::string ExecutableOfTask(const ClusterConfig& config);

// Returns the arguments of `launch --task` for the task's executable, without
// those that only launch uses.
std::vector<std::string> ArgumentsOfTask(
    absl::Span<const std::string> arguments);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_ROLE_EXECUTABLE_H_
