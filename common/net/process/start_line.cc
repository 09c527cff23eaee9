#include "common/net/process/start_line.h"

#include "absl/strings/str_cat.h"
#include "common/net/process/version.h"
#include "common/net/rpc/identity.h"

namespace muster {
namespace {

std::string RoleOf(const ClusterConfig& config) {
  const TaskId task = config.task;
  if (config.cluster.empty() && task.type != TaskType::kEvaluator) {
    return "one process";
  }
  const bool comes_once =
      task.type == TaskType::kChief || task.type == TaskType::kEvaluator;
  if (comes_once || config.cluster.sparse(task.type)) return task.ToString();
  return absl::StrCat(task.ToString(), " of ",
                      config.cluster.task_count(task.type));
}

}  // namespace

std::string StartLine(const StartInfo& info) {
  std::string line =
      absl::StrCat("muster ", kVersion, "  ", RoleOf(info.config));
  if (!info.address.empty()) absl::StrAppend(&line, "  ", info.address);
  absl::StrAppend(&line, "  incarnation ", IncarnationString(info.incarnation));
  if (info.seed.has_value()) absl::StrAppend(&line, "  seed ", *info.seed);
  if (!info.resumes_from.empty()) {
    absl::StrAppend(&line, "  resumes from ", info.resumes_from);
  }
  return line;
}

}  // namespace muster
