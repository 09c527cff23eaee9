#include "deploy/launch/task_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr int kTaskCountMax = 1000;

absl::StatusOr<ClusterSpec> MakeCluster(const std::vector<TaskId>& tasks,
                                        const std::vector<int>& ports) {
  std::map<TaskType, JobSpec> jobs;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].type == TaskType::kEvaluator) continue;
    jobs[tasks[i].type].addresses[tasks[i].index] =
        absl::StrCat("localhost:", ports[i]);
  }
  return ClusterSpec::Create(std::move(jobs));
}

// Parameter servers, and workers of a cluster with parameter servers, need no
// job file: the coordinator sends them their work.
bool NeedsJobFile(TaskId task, const ClusterPlan& plan) {
  if (task.type == TaskType::kPs) return false;
  return task.type != TaskType::kWorker || plan.ps_count == 0;
}

}  // namespace

bool HasCoordinator(const ClusterPlan& plan) {
  return plan.with_chief && plan.ps_count > 0;
}

std::vector<TaskId> TasksOf(const ClusterPlan& plan) {
  std::vector<TaskId> tasks;
  if (plan.with_chief) tasks.push_back({TaskType::kChief, 0});
  for (int i = 0; i < plan.worker_count; ++i) {
    tasks.push_back({TaskType::kWorker, i});
  }
  for (int i = 0; i < plan.ps_count; ++i) tasks.push_back({TaskType::kPs, i});
  if (plan.with_evaluator) tasks.push_back({TaskType::kEvaluator, 0});
  return tasks;
}

std::string ExecutableFor(TaskId task, const ClusterPlan& plan) {
  switch (task.type) {
    case TaskType::kPs:
      return "ps";
    case TaskType::kWorker:
      return "worker";
    case TaskType::kChief:
      return plan.ps_count == 0 && plan.worker_count > 0 ? "worker"
                                                         : "coordinator";
    case TaskType::kEvaluator:
      return "coordinator";
  }
  return "coordinator";
}

int ThreadCountFor(TaskId task, const ClusterPlan& plan) {
  int computing = plan.worker_count + plan.ps_count;
  const bool chief_computes = plan.with_chief && plan.ps_count == 0;
  if (chief_computes) ++computing;
  if (task.type == TaskType::kChief && !chief_computes) computing = 0;
  if (task.type == TaskType::kEvaluator || computing == 0) return 1;
  return std::max(1, plan.core_count / computing);
}

absl::Status CheckPlan(const ClusterPlan& plan) {
  for (const auto& [name, count] : {std::pair("--workers", plan.worker_count),
                                    std::pair("--ps", plan.ps_count)}) {
    if (count < 0 || count > kTaskCountMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "=", count, ": 0 to ", kTaskCountMax));
    }
  }
  if (plan.ps_count > 0 && plan.worker_count == 0) {
    return absl::InvalidArgumentError(
        "parameter servers need workers to serve: add --workers=1, or take "
        "--ps=0 to train in one process");
  }
  if (plan.worker_count_min > 0 && plan.ps_count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--min_workers=", plan.worker_count_min,
        " is for workers that train in sync; with parameter servers the loss "
        "of a worker costs nothing as long as one is left: leave it out, or "
        "train with --ps=0"));
  }
  if (plan.worker_count_min < 0 || plan.worker_count_min > plan.worker_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min_workers=", plan.worker_count_min, ": 0 to ",
                     plan.worker_count, ", the number of workers"));
  }
  if (TasksOf(plan).empty()) {
    return absl::InvalidArgumentError(
        "nothing to start: add --workers=1 or --chief");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TaskPlan>> PlanTasks(
    const ClusterPlan& plan, const std::vector<int>& ports,
    absl::FunctionRef<absl::StatusOr<std::string>(absl::string_view name)>
        find_executable) {
  RETURN_IF_ERROR(CheckPlan(plan));
  const std::vector<TaskId> tasks = TasksOf(plan);
  ASSIGN_OR_RETURN(const ClusterSpec cluster, MakeCluster(tasks, ports));
  const bool alone = tasks.size() == 1 && plan.program.empty();
  std::vector<TaskPlan> result;
  for (const TaskId& task : tasks) {
    TaskPlan process;
    process.task = task;
    if (plan.program.empty()) {
      ASSIGN_OR_RETURN(const std::string path,
                       find_executable(ExecutableFor(task, plan)));
      process.arguments.push_back(path);
    } else {
      process.arguments = plan.program;
    }
    if (plan.program.empty()) {
      if (!plan.job_file.empty() && NeedsJobFile(task, plan)) {
        process.arguments.push_back(absl::StrCat("--job=", plan.job_file));
      }
      // Parameter servers and workers may access the folders that settings
      // name.
      for (const auto& [name, value] : plan.settings) {
        process.arguments.push_back("--set");
        process.arguments.push_back(absl::StrCat(name, "=", value));
      }
    }
    process.environment = plan.environment;
    if (result.empty()) {
      process.environment.insert(plan.leader_environment.begin(),
                                 plan.leader_environment.end());
    }
    process.environment["TF_CONFIG"] =
        alone ? ""
              : absl::StrCat("{\"cluster\":", cluster.ToString(),
                             ",\"task\":{\"type\":\"", TaskTypeName(task.type),
                             "\",\"index\":", task.index, "}}");
    process.environment["MUSTER_THREADS"] =
        absl::StrCat(ThreadCountFor(task, plan));
    process.environment["MUSTER_RUN_DIR"] = plan.run_dir;
    result.push_back(std::move(process));
  }
  return result;
}

}  // namespace muster
