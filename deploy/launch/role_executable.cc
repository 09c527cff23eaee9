#include "deploy/launch/role_executable.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/task_id.h"
#include "deploy/launch/task_plan.h"

namespace muster {
namespace {

constexpr absl::string_view kTask = "--task";
constexpr absl::string_view kBinDir = "--bin_dir";

}  // namespace

bool IsTaskMode(absl::Span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == kTask) return true;
  }
  return false;
}

std::string ExecutableOfTask(const ClusterConfig& config) {
  ClusterPlan plan;
  plan.ps_count = config.cluster.task_count(TaskType::kPs);
  plan.worker_count = config.cluster.task_count(TaskType::kWorker);
  return ExecutableFor(config.task, plan);
}

std::vector<std::string> ArgumentsOfTask(
    absl::Span<const std::string> arguments) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == kTask || absl::StartsWith(argument, "--bin_dir=")) continue;
    if (argument == kBinDir) {
      ++i;  // Skips the value of --bin_dir.
      continue;
    }
    kept.push_back(argument);
  }
  return kept;
}

}  // namespace muster
