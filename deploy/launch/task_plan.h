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

// The cluster that a person asked for.
struct ClusterPlan {
  int worker_count = 2;
  int ps_count = 2;
  bool with_chief = true;
  bool with_evaluator = false;
  int core_count = 1;  // Divided among the tasks that compute.

  // The same program in every role, with its arguments; or empty, for the
  // executables that come with Muster.
  std::vector<std::string> program;

  std::string job_file;
  std::map<std::string, std::string> settings;
  std::string run_dir;

  // Passed on to every task.
  std::map<std::string, std::string> environment;
  // Passed on to the task that leads the job: the first of TasksOf().
  std::map<std::string, std::string> leader_environment;
};

// One process to be started.
struct TaskPlan {
  TaskId task;
  std::vector<std::string> arguments;  // The executable first.
  std::map<std::string, std::string> environment;
};

// Which task trains: the one whose end is the end of the job.
bool HasCoordinator(const ClusterPlan& plan);

// The tasks of the cluster, chief first, evaluator last.
std::vector<TaskId> TasksOf(const ClusterPlan& plan);

// The name of the stock executable for `task`: "ps", "worker", "coordinator".
// Without parameter servers a chief is one of the workers.
std::string ExecutableFor(TaskId task, const ClusterPlan& plan);

// Threads for `task`. The chief of parameter servers only gives orders, so the
// others share the cores; at least one each.
int ThreadCountFor(TaskId task, const ClusterPlan& plan);

// Checks the numbers of tasks.
//   kInvalidArgument   no task at all, too many, or servers without a worker
absl::Status CheckPlan(const ClusterPlan& plan);

// `ports` has one for every task of TasksOf(), in that order; they are of this
// machine. `find_executable` gives the path of a stock executable by name.
//
//   as CheckPlan() and find_executable
absl::StatusOr<std::vector<TaskPlan>> PlanTasks(
    const ClusterPlan& plan, const std::vector<int>& ports,
    absl::FunctionRef<absl::StatusOr<std::string>(absl::string_view name)>
        find_executable);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_TASK_PLAN_H_
