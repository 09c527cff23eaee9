#ifndef COMMON_NET_CLUSTER_CLUSTER_SPEC_H_
#define COMMON_NET_CLUSTER_CLUSTER_SPEC_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// The tasks of one role, by index.
struct JobSpec {
  std::map<int, std::string> addresses;  // "host:port"

  // True if given as a map: the role may have more tasks than listed, such as
  // workers that join and leave.
  bool sparse = false;

  bool operator==(const JobSpec&) const = default;
};

// The tasks of a cluster and their addresses: the validated `cluster` of
// TF_CONFIG. Empty if everything runs in one process.
//
// Equivalent to: tf.train.ClusterSpec. Copyable; thread-compatible.
class ClusterSpec {
 public:
  ClusterSpec() = default;

  // Every error names the entry and how to fix it.
  //   kInvalidArgument  an invalid address (no port, a port out of range, a
  //                     wildcard host); a negative index; more than one chief
  //                     or evaluator; the same address for two tasks; localhost
  //                     beside other hosts
  static absl::StatusOr<ClusterSpec> Create(std::map<TaskType, JobSpec> jobs);

  // As Create(), from lists: {{TaskType::kPs, {"h0:2222", "h1:2222"}}}.
  static absl::StatusOr<ClusterSpec> FromLists(
      const std::map<TaskType, std::vector<std::string>>& lists);

  bool empty() const { return jobs_.empty(); }
  bool Has(TaskType type) const { return task_count(type) > 0; }
  bool Has(TaskId task) const;

  // The number of listed tasks. A sparse role may have more.
  int task_count(TaskType type) const;
  bool sparse(TaskType type) const;

  // Returns the tasks of one role by ascending index.
  std::vector<TaskId> Tasks(TaskType type) const;

  // Returns the tasks that a start waits for: chief, workers, then parameter
  // servers. An evaluator only reads checkpoints and is not waited for.
  std::vector<TaskId> Members() const;

  // Returns the address of `task`.
  //   kNotFound  the task is not in the cluster; the message lists those that
  //              are
  absl::StatusOr<std::string> Address(TaskId task) const;

  // True if `task` writes checkpoints and logs: the chief, or worker 0 if there
  // is no chief. An evaluator is its own chief.
  bool IsChief(TaskId task) const;

  // Returns the number of tasks that consume input: chief and workers, or for
  // an evaluator all evaluators.
  //   kInvalidArgument  a parameter server, which consumes no input
  absl::StatusOr<int> WorkerCount(TaskType asker) const;

  // Returns the index of `task` among these: its input pipeline id.
  //   kInvalidArgument  a parameter server
  absl::StatusOr<int> IdInCluster(TaskId task) const;

  // Returns TF_CONFIG's notation {"worker":["h0:2222"],"ps":["h1:2222"]}.
  std::string ToString() const;

  const std::map<TaskType, JobSpec>& jobs() const { return jobs_; }

  bool operator==(const ClusterSpec&) const = default;

 private:
  explicit ClusterSpec(std::map<TaskType, JobSpec> jobs)
      : jobs_(std::move(jobs)) {}

  std::map<TaskType, JobSpec> jobs_;  // Every role has at least one task.
};

// Returns TF_CONFIG's notation of a role: ["h0:2222", "h1:2222"], or a map if
// sparse.
std::string ToString(const JobSpec& job);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_SPEC_H_
