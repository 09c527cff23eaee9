#include "common/net/cluster/cluster_config.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

std::string RolesOf(const ClusterSpec& cluster) {
  return absl::StrJoin(cluster.jobs(), ", ",
                       [](std::string* out, const auto& entry) {
                         out->append(std::string(TaskTypeName(entry.first)));
                       });
}

// Returns "2 tasks (0 to 1)", or for a sparse role "tasks 1, 4".
std::string IndicesOf(const ClusterSpec& cluster, TaskType type) {
  const int count = cluster.task_count(type);
  if (cluster.sparse(type)) {
    return absl::StrCat(count == 1 ? "task " : "tasks ",
                        absl::StrJoin(cluster.Tasks(type), ", ",
                                      [](std::string* out, const TaskId& task) {
                                        absl::StrAppend(out, task.index);
                                      }));
  }
  if (count == 1) return "1 task (0)";
  return absl::StrCat(count, " tasks (0 to ", count - 1, ")");
}

std::string MissingEntries(int count, int index) {
  if (index == count) return absl::StrCat("entry ", index);
  return absl::StrCat("entries ", count, index == count + 1 ? " and " : " to ",
                      index);
}

absl::Status IndexOutOfRange(const ClusterConfig& config) {
  const auto& [type, index] = config.task;
  const int count = config.cluster.task_count(type);
  const std::string problem =
      absl::StrCat("task.index is ", index, " but cluster.", TaskTypeName(type),
                   " has ", IndicesOf(config.cluster, type));
  // A slightly larger index suggests missing entries; a much larger one is
  // probably wrong.
  constexpr int kForgottenMax = 8;
  const bool comes_once =
      type == TaskType::kChief || type == TaskType::kEvaluator;
  if (comes_once || config.cluster.sparse(type) ||
      index - count >= kForgottenMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        problem, "; set task.index to this task's position in that list"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(problem, "; did you mean to add \"host:port\" ",
                   MissingEntries(count, index), "?"));
}

std::string KindOfTraining(const ClusterConfig& config) {
  if (config.task.type == TaskType::kEvaluator) {
    return "evaluates checkpoints; no task waits for it";
  }
  if (config.IsAlone()) return "in this process alone";
  if (config.HasParameterServers()) {
    return absl::StrFormat("parameter servers (workers: %d, servers: %d)",
                           config.cluster.task_count(TaskType::kWorker),
                           config.cluster.task_count(TaskType::kPs));
  }
  return absl::StrFormat(
      "synchronous (workers: %d)",
      config.cluster.WorkerCount(TaskType::kWorker).value_or(0));
}

}  // namespace

bool ClusterConfig::IsAlone() const {
  if (task.type == TaskType::kEvaluator) return true;
  const std::vector<TaskId> members = cluster.Members();
  return members.empty() || (members.size() == 1 && members.front() == task);
}

absl::Status CheckTaskIsInCluster(const ClusterConfig& config) {
  const TaskType type = config.task.type;
  const std::string role(TaskTypeName(type));
  if (config.task.index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.index is ", config.task.index, "; tasks are numbered from 0"));
  }
  if (config.cluster.empty()) {
    const bool may_be_alone = type != TaskType::kPs && config.task.index == 0;
    if (may_be_alone) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("this task is ", config.task.ToString(),
                     ", but there is no cluster; add \"cluster\":{\"", role,
                     "\":[\"host:port\",...],...}"));
  }
  if (config.cluster.Has(config.task)) return absl::OkStatus();
  if (config.cluster.Has(type)) return IndexOutOfRange(config);
  const bool may_be_absent =
      type == TaskType::kEvaluator ||
      (type == TaskType::kChief && config.HasParameterServers());
  if (may_be_absent && config.task.index == 0) return absl::OkStatus();
  if (may_be_absent) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.index is ", config.task.index, " but there can be only one ",
        role, "; set task.index to 0"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "task.type is \"", role, "\" but cluster has no ", role, ", only ",
      RolesOf(config.cluster), "; add \"", role,
      "\":[\"host:port\",...] to cluster, or set task.type to a role in it"));
}

absl::Status CheckParameterServerCluster(const ClusterConfig& config) {
  if (!config.cluster.Has(TaskType::kPs)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter-server training needs a \"ps\" in the cluster, but the "
        "cluster is ",
        config.cluster.ToString(),
        "; add \"ps\":[\"host:port\"], or train with another strategy"));
  }
  // A parameter server accepts any worker. Its cluster need not list workers,
  // which may join and leave.
  if (config.task.type == TaskType::kPs) return absl::OkStatus();
  if (!config.cluster.Has(TaskType::kWorker)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter-server training needs a \"worker\" in the cluster (the "
        "chief coordinates and runs no steps), but the cluster is ",
        config.cluster.ToString(), "; add \"worker\":[\"host:port\"]"));
  }
  return absl::OkStatus();
}

absl::Status CheckMultiWorkerCluster(const ClusterConfig& config) {
  if (config.task.type == TaskType::kPs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this task is ", config.task.ToString(),
        ", but synchronous training has no parameter servers; set its task "
        "type to \"worker\", or use the parameter-server strategy"));
  }
  if (config.cluster.empty() || config.task.type == TaskType::kEvaluator ||
      config.cluster.Has(TaskType::kChief) ||
      config.cluster.Has(TaskType::kWorker)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "synchronous training needs a \"chief\" or a \"worker\" in the cluster, "
      "but the cluster is ",
      config.cluster.ToString(), "; add \"worker\":[\"host:port\",...]"));
}

std::string DescribeCluster(const ClusterConfig& config) {
  std::string text;
  const auto line = [&text](absl::string_view what, absl::string_view value) {
    absl::StrAppendFormat(&text, "%-12s %s\n", what, value);
  };
  line("read from",
       config.source.empty() ? "nothing: no TF_CONFIG is set" : config.source);
  line("this task",
       config.cluster.empty() ? "the only one" : config.task.ToString());
  line("training", KindOfTraining(config));
  for (const auto& [type, job] : config.cluster.jobs()) {
    for (const auto& [index, address] : job.addresses) {
      const TaskId task = {type, index};
      line(task.ToString(),
           absl::StrCat(address, task == config.task ? "  <- this task" : ""));
    }
    if (job.sparse) {
      line(TaskTypeName(type), "given as a map: there may be more tasks");
    }
  }
  return text;
}

}  // namespace muster
