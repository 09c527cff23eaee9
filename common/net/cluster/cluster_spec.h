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

  // Given as a map: there may be more tasks of this role than are named here,
  // as when workers come and go.
  bool sparse = false;

  bool operator==(const JobSpec&) const = default;
};

// Who is in the cluster, and where: the `cluster` of a TF_CONFIG, checked.
//
// Equivalent to: tf.train.ClusterSpec. A value; empty when everything runs in
// one process.
class ClusterSpec {
 public:
  ClusterSpec() = default;

  // Every error names the entry and says how to mend it.
  //
  //   kInvalidArgument   an address that cannot be dialled (no port, a port out
  //                      of range, a wildcard host); an index below zero; more
  //                      than one chief or evaluator; one address given to two
  //                      tasks; localhost beside other hosts
  static absl::StatusOr<ClusterSpec> Create(std::map<TaskType, JobSpec> jobs);

  // The same from plain lists: {{TaskType::kPs, {"h0:2222", "h1:2222"}}}.
  static absl::StatusOr<ClusterSpec> FromLists(
      const std::map<TaskType, std::vector<std::string>>& lists);

  bool empty() const { return jobs_.empty(); }
  bool Has(TaskType type) const { return task_count(type) > 0; }
  bool Has(TaskId task) const;

  // Tasks named here. For a sparse role there may be more.
  int task_count(TaskType type) const;
  bool sparse(TaskType type) const;

  // Those of one role, by rising index.
  std::vector<TaskId> Tasks(TaskType type) const;

  // Everyone a start-up waits for: chief, workers, then parameter servers. An
  // evaluator works from checkpoints; nobody waits for it.
  std::vector<TaskId> Members() const;

  //   kNotFound   the task is not in the cluster; says which are
  absl::StatusOr<std::string> Address(TaskId task) const;

  // Whether `task` saves and logs for the others: the chief, or worker 0 where
  // there is none. An evaluator is the chief of its own cluster of one.
  bool IsChief(TaskId task) const;

  // Tasks that consume input: chief and workers, or for an evaluator all
  // evaluators.
  //
  //   kInvalidArgument   a parameter server consumes none
  absl::StatusOr<int> WorkerCount(TaskType asker) const;

  // Position among those: the id of a task's input pipeline.
  //
  //   kInvalidArgument   a parameter server has none
  absl::StatusOr<int> IdInCluster(TaskId task) const;

  // As TF_CONFIG writes it: {"worker":["h0:2222"],"ps":["h1:2222"]}.
  std::string ToString() const;

  const std::map<TaskType, JobSpec>& jobs() const { return jobs_; }

  bool operator==(const ClusterSpec&) const = default;

 private:
  explicit ClusterSpec(std::map<TaskType, JobSpec> jobs)
      : jobs_(std::move(jobs)) {}

  std::map<TaskType, JobSpec> jobs_;  // No role without a task.
};

// A role as TF_CONFIG writes it: ["h0:2222", "h1:2222"], or as a map when
// sparse.
std::string ToString(const JobSpec& job);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_SPEC_H_
