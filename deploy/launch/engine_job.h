#ifndef DEPLOY_LAUNCH_ENGINE_JOB_H_
#define DEPLOY_LAUNCH_ENGINE_JOB_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// A job whose processes an engine, Slurm or Kubernetes, places on machines and
// restarts.
struct EngineJob {
  ClusterPlan plan;  // An empty run_dir means the engine's default.
  std::string name;  // A DNS label.
  bool tls = false;  // False if the user requested plaintext.
  // The port of a task, or of the first task on a node. Unset: 8888, or with
  // Slurm the first of a range that no other job uses.
  std::optional<int> port_base;
};

// The default port of tasks on separate machines.
inline constexpr int kEnginePortDefault = 8888;

// Maximum length of EngineJob::name. With the longest role and index, the name
// is still a valid label of a host name.
inline constexpr size_t kEngineJobNameLengthMax = 40;

// Returns a name for the job file or program at `path`: its file name without
// extension, in lower case, with "-" for other characters than letters and
// digits.
std::string EngineJobName(absl::string_view path);

// Checks that the name is a DNS label (RFC 1035) that leaves room for role and
// index.
//   kInvalidArgument  it is not; the message says which names are valid
absl::Status CheckEngineJobName(absl::string_view name);

// Returns the roles and counts of the plan in the notation of --cluster_tasks.
// Roles that others connect to come first: "chief=1,ps=1,worker=2".
std::string ClusterTasksOf(const ClusterPlan& plan);

// Returns the arguments of each task after the executable. All tasks get the
// same arguments, and each task ignores those of other roles. `job_file` is the
// path of the job file where the tasks run.
std::vector<std::string> EngineTaskArguments(const ClusterPlan& plan,
                                             const std::string& job_file);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_ENGINE_JOB_H_
