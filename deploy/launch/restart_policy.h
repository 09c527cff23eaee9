#ifndef DEPLOY_LAUNCH_RESTART_POLICY_H_
#define DEPLOY_LAUNCH_RESTART_POLICY_H_

#include <string>

#include "absl/time/time.h"
#include "common/net/process/child_process.h"

namespace muster {

// Decides whether and when a task that has ended is started again. Pure
// arithmetic; one for each task.
class RestartPolicy {
 public:
  struct Options {
    // 0: never. A task that ended well, or with the usage status, is never
    // started again either.
    int restart_count_max = 0;

    // A run shorter than this is a crash at the start. The first of them in a
    // row is followed at once by a new start, the others by ever longer pauses.
    absl::Duration short_run = absl::Seconds(2);
    absl::Duration pause_first = absl::Milliseconds(100);
    absl::Duration pause_max = absl::Seconds(10);

    // So many crashes at the start in a row are a crash loop. An end by SIGKILL
    // or SIGTERM comes from outside and does not count, nor does
    // ExitCode::kRestartMe: the task has lost another one, which may be in a
    // crash loop.
    int crash_count_max = 5;
  };

  struct Decision {
    bool restart = false;
    absl::Duration pause;
    // Why there is no restart: "crash loop: ended 5 times within 2 s"; empty
    // when none was to be expected.
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
