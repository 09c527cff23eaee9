#ifndef DEPLOY_LAUNCH_RESTART_POLICY_H_
#define DEPLOY_LAUNCH_RESTART_POLICY_H_

#include <string>

#include "absl/time/time.h"
#include "common/net/process/child_process.h"

namespace muster {

// Decides whether and when a task that has ended is restarted. Has no side
// effects. Each task has its own instance.
class RestartPolicy {
 public:
  struct Options {
    // 0: never. A task that succeeded, or ended with ExitCode::kUsage, is never
    // restarted.
    int restart_count_max = 0;

    // If true, a task that ended with an exit code below 128 is not restarted:
    // the failure of a coordinator is that of the job.
    bool keeps_failures = false;

    // A shorter run is a crash at the start. The first of several in a row is
    // followed by an immediate restart, the others by increasing pauses.
    absl::Duration short_run = absl::Seconds(2);
    absl::Duration pause_first = absl::Milliseconds(100);
    absl::Duration pause_max = absl::Seconds(10);

    // This many crashes at the start in a row are a crash loop. An end by
    // SIGKILL or SIGTERM is caused from outside and resets the count. An end
    // with ExitCode::kRestartMe does not count: the task has lost another task,
    // which may be in a crash loop.
    int crash_count_max = 5;
  };

  struct Decision {
    bool restart = false;
    absl::Duration pause;
    // Why there is no restart: "crash loop: it ended 5 times ..."; empty if the
    // task is restarted or was not to be restarted.
    std::string reason;
  };

  explicit RestartPolicy(Options options) : options_(options) {}

  Decision OnEnd(const ProcessEnd& end, absl::Duration ran_for);

  int restart_count() const { return restart_count_; }

 private:
  const Options options_;
  int restart_count_ = 0;
  int short_run_count_ = 0;  // In a row.
  int crash_count_ = 0;      // In a row.
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_RESTART_POLICY_H_
