#ifndef DEPLOY_LAUNCH_ENGINE_JOB_H_
#define DEPLOY_LAUNCH_ENGINE_JOB_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// A job whose processes an engine, Slurm or Kubernetes, places and starts
// again.
struct EngineJob {
  ClusterPlan plan;  // run_dir may be empty: the engine's default.
  std::string name;  // A DNS label.
  bool tls = false;  // Else tasks talk in plaintext, which was asked for.
  // The port of a task, or of the first one of a node; unset: 8888, or with
  // Slurm the first of a range that no other job uses.
  std::optional<int> port_base;
};

// Where tasks listen that have a machine of their own.
inline constexpr int kEnginePortDefault = 8888;

// The longest EngineJob::name: with the longest role and index it still is a
// label of a host name.
inline constexpr size_t kEngineJobNameLengthMax = 40;

// Returns a name for the job file or program at `path`: its file name without
// extension, in lower case, with "-" for other characters than letters and
// digits.
std::string EngineJobName(absl::string_view path);

// Checks that the name is a DNS label (RFC 1035) that leaves room for role and
// index.
//   kInvalidArgument  it is not; the message says what is allowed
absl::Status CheckEngineJobName(absl::string_view name);

// Returns the roles and counts of the plan in the notation of --cluster_tasks,
// with those first that others connect to: "chief=1,ps=1,worker=2".
std::string ClusterTasksOf(const ClusterPlan& plan);

// Returns the arguments of each task after the executable: the same for all, so
// that the task's role decides which of them matter. `job_file` is the path
// there.
std::vector<std::string> EngineTaskArguments(const ClusterPlan& plan,
                                             const std::string& job_file);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_ENGINE_JOB_H_
