#include "deploy/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/check.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

constexpr absl::string_view kOwnLabel = "launch";
constexpr int kOwnColor = 0;

int LabelWidth(const std::vector<TaskPlan>& tasks) {
  size_t width = kOwnLabel.size();
  for (const TaskPlan& task : tasks) {
    width = std::max(width, task.task.ToString().size());
  }
  return static_cast<int>(width);
}

Console::Options WithLabelWidth(Console::Options options,
                                const std::vector<TaskPlan>& tasks) {
  options.label_width = LabelWidth(tasks);
  return options;
}

std::string LogPath(const std::string& log_dir, TaskId task) {
  return absl::StrCat(
      log_dir, "/", absl::StrReplaceAll(task.ToString(), {{" ", "-"}}), ".log");
}

std::string Rounded(absl::Duration duration) {
  const absl::Duration unit = duration < absl::Seconds(1)
                                  ? absl::Milliseconds(1)
                                  : absl::Milliseconds(100);
  return absl::FormatDuration(absl::Trunc(duration, unit));
}

void Stop(int signal, LaunchedTask* task) {
  task->SendSignal(signal);
  // Resumes the process if it is stopped. Otherwise it would not handle
  // `signal`.
  task->SendSignal(SIGCONT);
}

}  // namespace

Launcher::Launcher(const ClusterPlan& plan, std::vector<TaskPlan> tasks,
                   Options options, ShutdownSignals* signals)
    : options_(std::move(options)),
      signals_(signals),
      clock_(Clock::Real()),
      has_coordinator_(HasCoordinator(plan)),
      console_(WithLabelWidth(options_.console, tasks)),
      watch_(plan),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(wake_fd_ >= 0);
  for (TaskPlan& task_plan : tasks) {
    const TaskId task = task_plan.task;
    LaunchedTask::Options task_options;
    task_options.log_path = LogPath(options_.log_dir, task);
    task_options.log_bytes_max = options_.log_bytes_max;
    task_options.color_index = static_cast<int>(entries_.size()) + 1;
    task_options.owns_terminal = options_.share_terminal && entries_.empty();
    entries_.push_back({std::make_unique<LaunchedTask>(std::move(task_plan),
                                                       task_options, &console_),
                        RestartPolicy(PolicyOf(task)), std::nullopt});
  }
  signals_->SetHandler([fd = wake_fd_](int) {
    const uint64_t one = 1;
    MUSTER_CHECK(write(fd, &one, sizeof(one)) == sizeof(one));
  });
}

Launcher::~Launcher() {
  signals_->SetHandler(nullptr);
  entries_.clear();  // Kills the processes that still run.
  close(wake_fd_);
}

int Launcher::Run() {
  if (!StartAll(clock_->Now())) return static_cast<int>(ExitCode::kUsage);
  while (AnyRunning() || phase_ == Phase::kRunning) {
    WaitForEvents();
    const absl::Time now = clock_->Now();
    PumpAll(now);
    AdvancePhase(now);
    if (phase_ == Phase::kRunning) RestartDue(now);
  }
  if (exit_code_ != 0 || evaluator_exit_code_ == 0) return exit_code_;
  Say(absl::StrCat("the job is done, but its evaluator failed with status ",
                   evaluator_exit_code_, ", and so does launch"));
  return evaluator_exit_code_;
}

bool Launcher::StartAll(absl::Time now) {
  for (Entry& entry : entries_) {
    const absl::Status status = entry.task->Start(now);
    if (status.ok()) continue;
    Say(absl::StrCat(entry.task->task().ToString(), ": ",
                     std::string(status.message())));
    return false;
  }
  return true;
}

void Launcher::WaitForEvents() {
  std::vector<pollfd> fds = {{wake_fd_, POLLIN, 0}};
  // After a signal wake_fd_ stays readable, so every poll() would return at
  // once.
  if (signals_->signal() != 0) fds.clear();
  for (const Entry& entry : entries_) entry.task->AppendPollFds(&fds);
  poll(fds.data(), fds.size(),
       PollTimeoutMilliseconds(NextTimer() - clock_->Now()));
}

absl::Time Launcher::NextTimer() const {
  absl::Time next = phase_deadline_;
  if (phase_ != Phase::kRunning) return next;
  next = std::min(next, watch_.next_change());
  for (const Entry& entry : entries_) {
    next = std::min(next, entry.restart_at.value_or(absl::InfiniteFuture()));
  }
  return next;
}

void Launcher::PumpAll(absl::Time now) {
  for (Entry& entry : entries_) {
    if (const std::optional<ProcessEnd> end = entry.task->Pump()) {
      OnEnd(&entry, *end, now);
    }
  }
}

void Launcher::OnEnd(Entry* entry, const ProcessEnd& end, absl::Time now) {
  const TaskId task = entry->task->task();
  const bool ends_by_itself = phase_ < Phase::kStopping;
  if (phase_ != Phase::kRunning) {
    if (task.type == TaskType::kEvaluator && ends_by_itself) {
      evaluator_exit_code_ = end.ShellCode();
    }
    if (!end.ok() && phase_ == Phase::kWindingDown) {
      Say(absl::StrCat(task.ToString(), " ", end.ToString(),
                       " after the end of the job"));
    }
    return;
  }
  const absl::Duration ran_for = now - entry->task->started();
  const RestartPolicy::Decision decision = entry->policy.OnEnd(end, ran_for);
  if (!end.ok()) {
    std::string line = absl::StrCat(task.ToString(), " ", end.ToString(),
                                    " after ", Rounded(ran_for));
    if (decision.restart) {
      absl::StrAppend(&line, "; restart ", entry->policy.restart_count());
    } else if (!decision.reason.empty()) {
      absl::StrAppend(&line, "; not restarted: ", decision.reason);
    }
    Say(line);
  }
  if (decision.restart) {
    entry->restart_at = now + decision.pause;
    return;
  }
  if (!decision.reason.empty()) {
    Say(absl::StrCat("the last lines of ", task.ToString(), ":"));
    for (const std::string& line : entry->task->last_lines()) {
      Say(absl::StrCat("  ", line));
    }
  }
  if (task.type == TaskType::kEvaluator) evaluator_exit_code_ = end.ShellCode();
  watch_.OnEnd(task, end, now);
}

void Launcher::RestartDue(absl::Time now) {
  for (Entry& entry : entries_) {
    if (!entry.restart_at.has_value() || *entry.restart_at > now) continue;
    entry.restart_at.reset();
    const absl::Status status = entry.task->Start(now);
    if (status.ok()) continue;
    Say(absl::StrCat(entry.task->task().ToString(), ": ",
                     std::string(status.message())));
    watch_.OnEnd(entry.task->task(), {.exit_code = 1}, now);
  }
}

void Launcher::AdvancePhase(absl::Time now) {
  const int signal = signals_->signal();
  if (signal != 0 && phase_ < Phase::kStopping) {
    exit_code_ = signals_->exit_code();
    Say(absl::StrCat("stopping the job (", strsignal(signal),
                     "); a second signal kills it"));
    // The other tasks only repeat the output of the leading task.
    for (size_t i = 1; i < entries_.size(); ++i) entries_[i].task->Mute();
    EnterStopping(signal, now);
    return;
  }
  if (phase_ == Phase::kRunning) {
    const std::optional<JobWatch::Verdict> verdict = watch_.verdict(now);
    if (!verdict.has_value()) return;
    exit_code_ = verdict->exit_code;
    if (verdict->reason.empty()) {
      phase_ = Phase::kWindingDown;
      phase_deadline_ = now + options_.grace_period;
      return;
    }
    Say(absl::StrCat("the job has failed: ", verdict->reason));
    EnterStopping(SIGTERM, now);
    return;
  }
  if (phase_ == Phase::kStopping) StopTheOthers();
  if (now < phase_deadline_) return;
  for (const Entry& entry : entries_) {
    if (!entry.task->running()) continue;
    Say(absl::StrCat(entry.task->task().ToString(), " has not ended within ",
                     absl::FormatDuration(options_.grace_period), "; ",
                     phase_ == Phase::kWindingDown ? "stopping" : "killing",
                     " it"));
  }
  if (phase_ == Phase::kWindingDown) {
    EnterStopping(SIGTERM, now);
    return;
  }
  phase_ = Phase::kKilling;
  phase_deadline_ = absl::InfiniteFuture();
  for (Entry& entry : entries_) entry.task->SendSignal(SIGKILL);
}

void Launcher::EnterStopping(int signal, absl::Time now) {
  phase_ = Phase::kStopping;
  phase_deadline_ = now + options_.grace_period;
  pending_stop_signal_ = signal;
  LaunchedTask& first = *entries_.front().task;
  if (first.task().type == TaskType::kChief) Stop(signal, &first);
  StopTheOthers();
}

void Launcher::StopTheOthers() {
  const LaunchedTask& first = *entries_.front().task;
  const bool waits = first.task().type == TaskType::kChief && first.running();
  if (waits || pending_stop_signal_ == 0) return;
  for (Entry& entry : entries_) Stop(pending_stop_signal_, entry.task.get());
  pending_stop_signal_ = 0;
}

bool Launcher::AnyRunning() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.task->running(); });
}

RestartPolicy::Options Launcher::PolicyOf(TaskId task) const {
  RestartPolicy::Options policy = options_.restart;
  if (task.type != TaskType::kChief) return policy;
  policy.keeps_failures = true;
  if (!has_coordinator_) policy.restart_count_max = 0;
  return policy;
}

void Launcher::Say(absl::string_view line) {
  console_.WriteLine(ConsoleStream::kError, kOwnLabel, kOwnColor, line);
}

}  // namespace muster
