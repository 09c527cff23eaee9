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
// One thread, one loop. No process outlives Run(): when the job is over, the
// others are given the grace period to end by themselves, then SIGTERM, then
// SIGKILL; and if this process dies, the kernel kills them.
class Launcher {
 public:
  struct Options {
    RestartPolicy::Options restart;  // Of all tasks but the chief.
    absl::Duration grace_period = absl::Seconds(10);
    std::string log_dir;  // Exists.
    // Of each task; a longer log is moved to "NAME.log.1". 0: no bound.
    int64_t log_bytes_max = 0;
    // The coordinator, or else the first task, draws its progress on our
    // terminal.
    bool share_terminal = false;
    Console::Options console;
  };

  // `signals` is borrowed.
  Launcher(const ClusterPlan& plan, std::vector<TaskPlan> tasks,
           Options options, ShutdownSignals* signals);
  ~Launcher();

  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns what `launch` is to end with: the job's status, or that of an
  // evaluator that failed beside a job that went well; 128 + signal after a
  // signal; 2 when a task could not be started.
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
  // Tells the coordinator first, which ends the job in good order; the others
  // when it has ended. Without one: all.
  void EnterStopping(int signal, absl::Time now);
  void StopTheOthers();
  absl::Time NextTimer() const;
  bool AnyRunning() const;
  bool IsRestarted(TaskId task) const;
  void Say(absl::string_view line);

  const Options options_;
  ShutdownSignals* const signals_;
  Clock* const clock_;
  Console console_;
  JobWatch watch_;
  std::vector<Entry> entries_;
  int wake_fd_ = -1;

  Phase phase_ = Phase::kRunning;
  absl::Time phase_deadline_ = absl::InfiniteFuture();
  int exit_code_ = 0;
  int evaluator_exit_code_ = 0;
  // The signal that tasks are stopped with; 0 when all have been sent it.
  int pending_stop_signal_ = 0;
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_LAUNCHER_H_
