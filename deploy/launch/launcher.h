#ifndef DEPLOY_LAUNCH_LAUNCHER_H_
#define DEPLOY_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/process/shutdown_signals.h"
#include "deploy/launch/console.h"
#include "deploy/launch/job_watch.h"
#include "deploy/launch/launched_task.h"
#include "deploy/launch/restart_policy.h"
#include "deploy/launch/task_plan.h"

namespace muster {

// Runs a cluster of processes on this machine from its start to its end.
//
// Runs one loop on one thread. No process outlives Run(): when the job has
// ended, the remaining processes get the grace period to end by themselves,
// then SIGTERM, then SIGKILL. If this process dies, the kernel kills them.
class Launcher {
 public:
  struct Options {
    // For all tasks. A coordinator is restarted after a signal, and if it asks
    // for it, but not after a failure. The chief of a synchronous job is never
    // restarted.
    RestartPolicy::Options restart;
    absl::Duration grace_period = absl::Seconds(10);
    std::string log_dir;  // An existing folder.
    // Maximum size of each task's log. A longer log is moved to "NAME.log.1". 0
    // for no limit.
    int64_t log_bytes_max = 0;
    // True if the first task, which is the coordinator if there is one, draws
    // its progress on the terminal of this process.
    bool share_terminal = false;
    Console::Options console;
  };

  // `signals` is borrowed.
  Launcher(const ClusterPlan& plan, std::vector<TaskPlan> tasks,
           Options options, ShutdownSignals* signals);
  ~Launcher();

  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns the exit status of `launch`: the job's status, or the status of the
  // evaluator if only that failed; 128 + signal after a signal; 2 if a task
  // could not be started.
  int Run();

 private:
  enum class Phase { kRunning, kWindingDown, kStopping, kKilling };

  struct Entry {
    std::unique_ptr<LaunchedTask> task;
    RestartPolicy policy;
    std::optional<absl::Time> restart_at;
  };

  bool StartAll(absl::Time now);
  void WaitForEvents();
  void PumpAll(absl::Time now);
  void OnEnd(Entry* entry, const ProcessEnd& end, absl::Time now);
  void RestartDue(absl::Time now);
  void AdvancePhase(absl::Time now);
  // Sends `signal` to the coordinator, which ends the job in an orderly way.
  // The other tasks get the signal when the coordinator has ended. Without a
  // coordinator, all tasks get it at once.
  void EnterStopping(int signal, absl::Time now);
  void StopTheOthers();
  absl::Time NextTimer() const;
  bool AnyRunning() const;
  RestartPolicy::Options PolicyOf(TaskId task) const;
  void Say(absl::string_view line);

  const Options options_;
  ShutdownSignals* const signals_;
  Clock* const clock_;
  const bool has_coordinator_;
  Console console_;
  JobWatch watch_;
  std::vector<Entry> entries_;
  int wake_fd_ = -1;

  Phase phase_ = Phase::kRunning;
  absl::Time phase_deadline_ = absl::InfiniteFuture();
  int exit_code_ = 0;
  int evaluator_exit_code_ = 0;
  // The signal that stops the tasks; 0 once all tasks have got it.
  int pending_stop_signal_ = 0;
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_LAUNCHER_H_
