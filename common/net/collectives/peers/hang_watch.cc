#include "common/net/collectives/peers/hang_watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/system/wait_line.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

// How long to wait for answers. A stopped peer does not answer.
constexpr absl::Duration kAnswerTimeout = absl::Milliseconds(500);

// The period over which recent_share is averaged, approximately.
constexpr absl::Duration kRecent = absl::Seconds(10);
// Upper limit of the time between two samples, which is normally one heartbeat
// interval.
constexpr absl::Duration kSampledMax = absl::Seconds(10);

}  // namespace

HangWatch::HangWatch(absl::Duration interval, int replicas_per_task,
                     PeerLinks* links, GroupLife* life, Clock* clock)
    : interval_(interval),
      replicas_per_task_(replicas_per_task),
      links_(links),
      life_(life),
      clock_(clock) {}

void HangWatch::Adopt(std::vector<const Communicator*> communicators) {
  absl::MutexLock lock(&mutex_);
  watched_.clear();
  for (const Communicator* const communicator : communicators) {
    watched_.push_back({.communicator = communicator});
  }
}

absl::Status HangWatch::CheckAwaitedTasksHaveNotLeft(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  for (const Watched& watched : watched_) {
    const CollectiveProgress progress = watched.communicator->Progress();
    if (!progress.is_running || progress.elapsed < patience) continue;
    for (const int rank : progress.missing_ranks) {
      const int task = rank / replicas_per_task_;
      if (!life_->HasLeft(task)) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          progress.operation, " of ", progress.name, " waits for ",
          links_->task(task).ToString(), ", which has finished: it had fewer ",
          "steps to make than this task. Give all workers as many, with ",
          "Repeat() and a number of steps"));
    }
  }
  return absl::OkStatus();
}

std::string HangWatch::OnTick() {
  {
    absl::MutexLock lock(&mutex_);
    SampleWaits();
    if (overdue_.has_value()) {
      if (answer_count_ < links_->task_count() - 1 &&
          clock_->Now() < answers_until_) {
        return "";
      }
      const CollectiveProgress overdue = *std::exchange(overdue_, std::nullopt);
      AddSilentPeers(&answers_[links_->rank()].report.emplace());
      return DescribeHang(overdue, links_->rank(), replicas_per_task_,
                          answers_);
    }
    overdue_ = FindOverdue();
    if (!overdue_.has_value()) return "";
    answers_until_ = clock_->Now() + kAnswerTimeout;
    answers_ = TaskNames();
    answer_count_ = 0;
  }
  proto::PeerMessage request;
  request.mutable_progress_request();
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    // An error is ignored: the report says that the task does not answer.
    if (rank != links_->rank()) life_->Send(rank, request);
  }
  return "";
}

void HangWatch::OnMessage(int rank, const proto::PeerMessage& message) {
  if (message.has_progress_request()) {
    proto::PeerMessage report;
    *report.mutable_progress_report() = OwnReport();
    life_->Send(rank, std::move(report));
    return;
  }
  if (!message.has_progress_report()) return;
  absl::MutexLock lock(&mutex_);
  if (!overdue_.has_value() || answers_[rank].report.has_value()) return;
  answers_[rank].report = message.progress_report();
  ++answer_count_;
}

void HangWatch::SampleWaits() {
  const absl::Time now = clock_->Now();
  // The time is limited because a process that was itself stopped has not
  // waited for other tasks during that time.
  const absl::Duration passed =
      std::clamp(now - last_sample_, absl::ZeroDuration(), kSampledMax);
  last_sample_ = now;
  waited_.resize(links_->task_count());
  std::vector<bool> is_awaited(waited_.size());
  for (const Watched& watched : watched_) {
    const CollectiveProgress progress = watched.communicator->Progress();
    if (!progress.is_running) continue;
    for (const int rank : progress.missing_ranks) {
      const size_t task = rank / replicas_per_task_;
      if (task < is_awaited.size()) is_awaited[task] = true;
    }
  }
  const double weight = absl::FDivDuration(passed, passed + kRecent);
  for (size_t task = 0; task < waited_.size(); ++task) {
    if (is_awaited[task]) waited_[task].total += passed;
    waited_[task].recent_share +=
        weight * ((is_awaited[task] ? 1 : 0) - waited_[task].recent_share);
  }
}

std::vector<HangWatch::Waited> HangWatch::AddWaits(StatusReport* report) const {
  absl::MutexLock lock(&mutex_);
  for (const Watched& watched : watched_) {
    const CollectiveProgress progress = watched.communicator->Progress();
    if (!progress.is_running || progress.missing_ranks.empty()) continue;
    std::set<std::string> awaited;
    for (const int rank : progress.missing_ranks) {
      const int task = rank / replicas_per_task_;
      if (task >= 0 && task < links_->task_count()) {
        awaited.insert(links_->task(task).ToString());
      }
    }
    report->waits.push_back(
        {.waiter = links_->task(links_->rank()).ToString(),
         .awaited = absl::StrJoin(awaited, ", "),
         .what = progress.name.empty()
                     ? progress.operation
                     : absl::StrCat(progress.operation, " of ", progress.name),
         .elapsed = progress.elapsed});
  }
  return waited_;
}

std::vector<PeerProgress> HangWatch::TaskNames() const {
  std::vector<PeerProgress> names(links_->task_count());
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    names[rank].task = links_->task(rank).ToString();
  }
  return names;
}

proto::ProgressReport HangWatch::OwnReport() {
  proto::ProgressReport report;
  {
    absl::MutexLock lock(&mutex_);
    for (const Watched& watched : watched_) {
      const CollectiveProgress progress = watched.communicator->Progress();
      proto::ReplicaProgress* const replica = report.add_replicas();
      replica->set_is_running(progress.is_running);
      replica->set_operation(progress.operation);
      replica->set_name(progress.name);
      replica->set_sequence(progress.sequence);
      replica->set_elapsed_seconds(absl::ToDoubleSeconds(progress.elapsed));
    }
  }
  if (const char* const activity = activity_.load(std::memory_order_relaxed)) {
    report.set_activity(activity);
    report.set_step(step_.load(std::memory_order_relaxed));
  }
  AddSilentPeers(&report);
  return report;
}

void HangWatch::AddSilentPeers(proto::ProgressReport* report) const {
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    const std::optional<absl::Duration> silence = links_->SilenceOf(rank);
    if (!silence.has_value()) continue;
    proto::SilentPeer* const peer = report->add_silent_peers();
    peer->set_task(links_->task(rank).ToString());
    peer->set_silence_seconds(absl::ToDoubleSeconds(*silence));
  }
}

std::optional<CollectiveProgress> HangWatch::FindOverdue() {
  for (Watched& watched : watched_) {
    CollectiveProgress progress = watched.communicator->Progress();
    if (!progress.is_running) continue;
    if (progress.sequence != watched.sequence) {
      watched.sequence = progress.sequence;
      watched.next_report = interval_;
    }
    if (progress.elapsed < watched.next_report) continue;
    watched.next_report = progress.elapsed + ReportPace::IntervalAfter(
                                                 progress.elapsed, interval_);
    return progress;
  }
  return std::nullopt;
}

}  // namespace muster
