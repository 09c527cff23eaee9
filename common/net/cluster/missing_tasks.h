#ifndef COMMON_NET_CLUSTER_MISSING_TASKS_H_
#define COMMON_NET_CLUSTER_MISSING_TASKS_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/name_lookup.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// The tasks that this task waits for when it starts, and why each is missing.
//
// The code that connects to the peers calls MarkMissing() and MarkPresent()
// with the outcome of each attempt; one thread calls Await(). This class does
// not connect.
//
//   MissingTasks missing(cluster, cluster.Tasks(TaskType::kPs), clock);
//   ... on connecting threads: missing.MarkPresent(ps_0);
//   RETURN_IF_ERROR(missing.Await(deadline, [](absl::string_view line) {
//     LOG(INFO) << line;
//   }));
//
// Thread-safe.
class MissingTasks {
 public:
  struct Options {
    absl::Duration report_interval = absl::Seconds(5);
    // The maximum number of tasks named in a line; the rest are counted. The
    // error at the deadline names all.
    int named_tasks_max = 8;
    // If the name of a missing task cannot be resolved, the answer of this
    // lookup replaces the reason. Borrowed; null for no lookups.
    NameLookup* names = nullptr;
    // The number of workers that Await() waits for; 0 for all workers.
    int worker_count_min = 0;
  };

  // All of `tasks` are missing at first. `clock` is borrowed and must outlive
  // this object.
  MissingTasks(const ClusterSpec& cluster, const std::vector<TaskId>& tasks,
               Clock* clock, Options options);
  MissingTasks(const ClusterSpec& cluster, const std::vector<TaskId>& tasks,
               Clock* clock)
      : MissingTasks(cluster, tasks, clock, Options()) {}

  MissingTasks(const MissingTasks&) = delete;
  MissingTasks& operator=(const MissingTasks&) = delete;

  void MarkPresent(TaskId task) ABSL_LOCKS_EXCLUDED(mutex_);

  // `reason` is the error of the last attempt to connect, such as "connection
  // refused". A present task may become missing again.
  void MarkMissing(TaskId task, absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reports that a missing task is connected to another coordinator. Workers
  // are connected to it from its start, and parameter servers once it trains.
  // Await() fails if a parameter server is taken, and in addition a worker is
  // either taken or present: it returns the worker's `error` if a worker is
  // taken, and otherwise the server's.
  void MarkServesAnother(TaskId task, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes Await() return `error`, such as a shutdown, or a peer with another
  // cluster configuration. The first error is kept.
  void Fail(absl::Status error) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until no task is missing, except workers beyond
  // Options::worker_count_min. At every report interval, calls `report` on this
  // thread, without a lock, with a line such as "waiting for worker 1
  // (localhost:20001: connection refused), 5 s".
  //   kDeadlineExceeded  tasks are still missing at `deadline`; names all of
  //                      them with the reasons
  //   any                the error passed to Fail() or MarkServesAnother()
  absl::Status Await(absl::Time deadline,
                     absl::FunctionRef<void(absl::string_view line)> report)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the missing tasks by ascending TaskId.
  std::vector<TaskId> tasks() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns "worker 1 (localhost:20001: connection refused), ps 0 (...)"; empty
  // if no task is missing.
  std::string Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Peer {
    std::string address;
    std::string reason;
    bool present = false;
    absl::Status taken;  // Not OK if connected to another coordinator.
  };

  bool IsSettled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const int unneeded_count =
        std::min(missing_worker_count_, spare_worker_count_);
    return missing_count_ == unneeded_count || !failure_.ok();
  }
  void FailIfTaken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds `change` to the number of missing tasks.
  void Count(TaskId task, int change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string DescribeLocked(int named_tasks_max) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const Options options_;
  const absl::Time started_;

  mutable absl::Mutex mutex_;
  std::map<TaskId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  int missing_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int missing_worker_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int spare_worker_count_ = 0;  // Workers beyond worker_count_min.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_MISSING_TASKS_H_
