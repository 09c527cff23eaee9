#ifndef DEPLOY_LAUNCH_TASK_PLAN_H_
#define DEPLOY_LAUNCH_TASK_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// The cluster that the flags of launch describe.
struct ClusterPlan {
  int worker_count = 2;
  int ps_count = 2;
  // As --min_workers of the tasks.
  int worker_count_min = 0;
  bool with_chief = true;
  bool with_evaluator = false;
  int core_count = 1;  // Divided among the tasks that compute.

  // A program with its arguments that runs in every role; empty for Muster's
  // executables.
  std::vector<std::string> program;

  std::string job_file;
  std::map<std::string, std::string> settings;
  std::string run_dir;

  // Passed to every task.
  std::map<std::string, std::string> environment;
  // Passed to the task that leads the job, which is the first of TasksOf().
  std::map<std::string, std::string> leader_environment;
};

// One process to start.
struct TaskPlan {
  TaskId task;
  std::vector<std::string> arguments;  // The executable first.
  std::map<std::string, std::string> environment;
};

// True if the plan has a coordinator: a chief in a cluster with parameter
// servers. The end of the coordinator is the end of the job.
bool HasCoordinator(const ClusterPlan& plan);

// Returns the tasks of the cluster: the chief first, the evaluator last.
std::vector<TaskId> TasksOf(const ClusterPlan& plan);

// Returns the name of the stock executable for `task`: "ps", "worker" or
// "coordinator". Without parameter servers, a chief with workers is a worker.
std::string ExecutableFor(TaskId task, const ClusterPlan& plan);

// Returns the number of threads for `task`, at least 1. The tasks that compute
// share the cores. A chief in a cluster with parameter servers only schedules
// work, and gets one thread.
int ThreadCountFor(TaskId task, const ClusterPlan& plan);

// Checks the numbers of tasks.
//   kInvalidArgument   no task at all, too many, or servers without a worker
absl::Status CheckPlan(const ClusterPlan& plan);

// Returns the processes to start. `ports` has a port of this machine for every
// task of TasksOf(), in that order. `find_executable` returns the path of a
// stock executable by name.
//
//   errors as CheckPlan() and `find_executable`
absl::StatusOr<std::vector<TaskPlan>> PlanTasks(
    const ClusterPlan& plan, const std::vector<int>& ports,
    absl::FunctionRef<absl::StatusOr<std::string>(absl::string_view name)>
        find_executable);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_TASK_PLAN_H_
