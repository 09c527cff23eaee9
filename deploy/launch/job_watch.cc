#include "deploy/launch/job_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

// A coordinator reports a lost server within 10 s, with more details than
// launch has.
constexpr absl::Duration kReportTime = absl::Seconds(15);

// A task that a signal ended, or that asks for a restart, has at least this
// exit code.
constexpr int kLossCodeMin = 128;

constexpr int kFailure = static_cast<int>(ExitCode::kFailure);
constexpr int kUsage = static_cast<int>(ExitCode::kUsage);

}  // namespace

JobWatch::JobWatch(const ClusterPlan& plan)
    : has_coordinator_(HasCoordinator(plan)),
      worker_count_min_(static_cast<size_t>(plan.worker_count_min)) {
  for (const TaskId& task : TasksOf(plan)) {
    if (task.type != TaskType::kEvaluator) running_.insert(task);
  }
}

void JobWatch::OnEnd(TaskId task, const ProcessEnd& end, absl::Time now) {
  if (running_.erase(task) == 0) return;
  if (has_coordinator_) {
    OnEndUnderCoordinator(task, end, now);
    return;
  }
  OnEndAmongPeers(task, end);
}

void JobWatch::OnEndAmongPeers(TaskId task, const ProcessEnd& end) {
  if (end.ok()) {
    if (running_.empty() || worker_count_min_ > 0) Decide(0, "");
    return;
  }
  const std::string what = absl::StrCat(task.ToString(), " ", end.ToString());
  const bool is_loss = end.ShellCode() >= kLossCodeMin;
  if (worker_count_min_ == 0 || !is_loss) {
    Decide(end.ShellCode(), what);
  } else if (running_.size() < worker_count_min_) {
    Decide(end.ShellCode(),
           absl::StrCat(what, ", ", running_.size(),
                        " workers are left, and --min_workers is ",
                        worker_count_min_));
  }
}

void JobWatch::OnEndUnderCoordinator(TaskId task, const ProcessEnd& end,
                                     absl::Time now) {
  const std::string what = absl::StrCat(task.ToString(), " ", end.ToString());
  if (task.type == TaskType::kChief) {
    Decide(end.ShellCode(), end.ok() ? "" : what);
    return;
  }
  // A restart would fail again, because the flags or the job are invalid.
  if (end.exit_code == kUsage) {
    Decide(kUsage, what);
    return;
  }
  const bool workers_left = std::any_of(
      running_.begin(), running_.end(),
      [](const TaskId& other) { return other.type == TaskType::kWorker; });
  const bool job_may_go_on = task.type == TaskType::kWorker && workers_left;
  if (job_may_go_on || overdue_ != absl::InfiniteFuture()) return;
  overdue_ = now + kReportTime;
  overdue_verdict_ = {kFailure,
                      task.type == TaskType::kWorker
                          ? absl::StrCat(what, " and no worker is left")
                          : what};
}

void JobWatch::Decide(int exit_code, std::string reason) {
  if (!verdict_.has_value()) verdict_ = {exit_code, std::move(reason)};
}

std::optional<JobWatch::Verdict> JobWatch::verdict(absl::Time now) const {
  if (!verdict_.has_value() && now >= overdue_) return overdue_verdict_;
  return verdict_;
}

absl::Time JobWatch::next_change() const {
  return verdict_.has_value() ? absl::InfiniteFuture() : overdue_;
}

}  // namespace muster
