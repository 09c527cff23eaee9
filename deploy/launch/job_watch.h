#ifndef DEPLOY_LAUNCH_JOB_WATCH_H_
#define DEPLOY_LAUNCH_JOB_WATCH_H_

#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/child_process.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// Decides from the ends of tasks when a job is over and how it went. Pure; told
// only of ends that no restart follows.
//
// With a coordinator the job is what the coordinator says. Workers may be lost
// as long as one is left; a lost parameter server is for the coordinator to
// report, within a time. Without one the job succeeds when all have ended well
// and fails with the first that has not.
class JobWatch {
 public:
  struct Verdict {
    int exit_code = 0;
    std::string reason;  // Empty for a job that went well.
  };

  explicit JobWatch(const ClusterPlan& plan);

  // `end` of `task` is final.
  void OnEnd(TaskId task, const ProcessEnd& end, absl::Time now);

  // Once there is a verdict it stays. `now` matters after the loss of a
  // parameter server only.
  std::optional<Verdict> verdict(absl::Time now) const;

  // When verdict() has to be asked again even if nothing ends.
  absl::Time next_change() const;

 private:
  void Decide(int exit_code, std::string reason);
  void OnEndUnderCoordinator(TaskId task, const ProcessEnd& end,
                             absl::Time now);

  const bool has_coordinator_;
  std::set<TaskId> running_;
  std::optional<Verdict> verdict_;

  // After this it is our verdict, not the coordinator's.
  absl::Time overdue_ = absl::InfiniteFuture();
  Verdict overdue_verdict_;
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_JOB_WATCH_H_
