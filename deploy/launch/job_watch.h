#ifndef DEPLOY_LAUNCH_JOB_WATCH_H_
#define DEPLOY_LAUNCH_JOB_WATCH_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/child_process.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// Decides from the ends of tasks whether a job has ended, and with which
// status. Has no side effects. Ends that a restart follows are not reported to
// it.
//
// With a coordinator, the job ends with the status of the coordinator. Workers
// may be lost as long as one remains. After the loss of the last worker or of a
// parameter server, the coordinator has some time to report it. Without a
// coordinator, the job succeeds when all tasks have succeeded, and fails when
// the first task fails. With --min_workers, tasks may be lost as long as that
// many run, and the job succeeds when a task has: its group ends together.
class JobWatch {
 public:
  struct Verdict {
    int exit_code = 0;
    std::string reason;  // Empty for a job that succeeded.
  };

  explicit JobWatch(const ClusterPlan& plan);

  // Reports the final end of `task`.
  void OnEnd(TaskId task, const ProcessEnd& end, absl::Time now);

  // Returns the verdict, if there is one. A verdict does not change any more.
  std::optional<Verdict> verdict(absl::Time now) const;

  // Returns the time to call verdict() again even if no task ends.
  absl::Time next_change() const;

 private:
  void Decide(int exit_code, std::string reason);
  void OnEndAmongPeers(TaskId task, const ProcessEnd& end);
  void OnEndUnderCoordinator(TaskId task, const ProcessEnd& end,
                             absl::Time now);

  const bool has_coordinator_;
  const size_t worker_count_min_;
  std::set<TaskId> running_;
  std::optional<Verdict> verdict_;

  // At this time `overdue_verdict_` becomes the verdict, unless the coordinator
  // has ended before.
  absl::Time overdue_ = absl::InfiniteFuture();
  Verdict overdue_verdict_;
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_JOB_WATCH_H_
