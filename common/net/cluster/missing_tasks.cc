#include "common/net/cluster/missing_tasks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/core/system/wait_line.h"

namespace muster {
namespace {

// Limits the length of messages from peers and resolvers in the log.
constexpr size_t kReasonLengthMax = 200;

std::string WholeSeconds(absl::Duration duration) {
  return absl::StrFormat("%d s", absl::ToInt64Seconds(duration));
}

}  // namespace

MissingTasks::MissingTasks(const ClusterSpec& cluster,
                           const std::vector<TaskId>& tasks, Clock* clock,
                           Options options)
    : clock_(clock), options_(options), started_(clock->Now()) {
  for (const TaskId& task : tasks) {
    Peer& peer = peers_[task];
    peer.address = cluster.Address(task).value_or("address unknown");
    peer.reason = "no answer yet";
    // Starts the lookup, whose outcome the first report contains.
    if (options_.names != nullptr) {
      options_.names->DescribeProblem(peer.address);
    }
  }
  absl::MutexLock lock(&mutex_);
  for (const auto& [task, peer] : peers_) Count(task, 1);
  if (options_.worker_count_min > 0) {
    spare_worker_count_ =
        std::max(0, missing_worker_count_ - options_.worker_count_min);
  }
}

void MissingTasks::Count(TaskId task, int change) {
  missing_count_ += change;
  if (task.type == TaskType::kWorker) missing_worker_count_ += change;
}

void MissingTasks::MarkPresent(TaskId task) {
  absl::MutexLock lock(&mutex_);
  const auto it = peers_.find(task);
  if (it == peers_.end()) return;
  it->second.taken = absl::OkStatus();
  if (it->second.present) return;
  it->second.present = true;
  Count(task, -1);
  FailIfTaken();
}

void MissingTasks::MarkMissing(TaskId task, absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  const auto it = peers_.find(task);
  if (it == peers_.end()) return;
  // Removes the task from the reason, because each line names it already.
  absl::ConsumePrefix(
      &reason, absl::StrCat(task.ToString(), " (", it->second.address, "): "));
  it->second.reason = std::string(reason.substr(0, kReasonLengthMax));
  it->second.taken = absl::OkStatus();
  if (!it->second.present) return;
  it->second.present = false;
  Count(task, 1);
}

void MissingTasks::MarkServesAnother(TaskId task, const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  const auto it = peers_.find(task);
  if (it == peers_.end() || it->second.present) return;
  it->second.taken = error;
  FailIfTaken();
}

void MissingTasks::FailIfTaken() {
  absl::Status worker;
  absl::Status server;
  bool has_worker = false;
  for (const auto& [task, peer] : peers_) {
    const bool is_worker = task.type == TaskType::kWorker;
    (is_worker ? worker : server).Update(peer.taken);
    has_worker = has_worker || (is_worker && peer.present);
  }
  if (server.ok()) return;
  failure_.Update(worker);
  if (has_worker) failure_.Update(server);
}

void MissingTasks::Fail(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  failure_.Update(std::move(error));
}

absl::Status MissingTasks::Await(
    absl::Time deadline,
    absl::FunctionRef<void(absl::string_view line)> report) {
  ReportPace pace(started_, options_.report_interval);
  for (;;) {
    std::string line;
    {
      absl::MutexLock lock(&mutex_);
      const bool settled = clock_->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &MissingTasks::IsSettled),
          std::min(deadline, pace.next()));
      if (settled) return failure_;
      const absl::Time now = clock_->Now();
      if (now >= deadline) {
        return absl::DeadlineExceededError(absl::StrCat(
            "gave up after ", WholeSeconds(now - started_), " waiting for ",
            DescribeLocked(static_cast<int>(peers_.size())),
            "; start them, check that each listens at this address, or allow "
            "more time with --startup_timeout"));
      }
      if (!pace.IsDue(now)) continue;
      line =
          absl::StrCat("waiting for ", DescribeLocked(options_.named_tasks_max),
                       ", ", WholeSeconds(now - started_));
    }
    report(line);
  }
}

std::vector<TaskId> MissingTasks::tasks() const {
  absl::MutexLock lock(&mutex_);
  std::vector<TaskId> missing;
  for (const auto& [task, peer] : peers_) {
    if (!peer.present) missing.push_back(task);
  }
  return missing;
}

std::string MissingTasks::Describe() const {
  absl::MutexLock lock(&mutex_);
  return DescribeLocked(static_cast<int>(peers_.size()));
}

std::string MissingTasks::DescribeLocked(int named_tasks_max) const {
  std::string text;
  int named_count = 0;
  for (const auto& [task, peer] : peers_) {
    if (peer.present) continue;
    if (named_count == named_tasks_max) {
      absl::StrAppend(&text, " and ", missing_count_ - named_count, " more");
      break;
    }
    const std::string name_trouble =
        options_.names == nullptr
            ? ""
            : options_.names->DescribeProblem(peer.address);
    absl::StrAppend(&text, named_count == 0 ? "" : ", ", task.ToString(), " (",
                    peer.address, ": ",
                    name_trouble.empty() ? peer.reason : name_trouble, ")");
    ++named_count;
  }
  return text;
}

}  // namespace muster
