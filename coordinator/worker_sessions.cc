#include "coordinator/worker_sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/system/log.h"
#include "common/core/system/wait_line.h"
#include "common/net/rpc/identity.h"
#include "coordinator/fatal_refusal.h"
#include "proto/worker.pb.h"

namespace muster {

using State = WorkerRecord::State;

void WorkerSessions::AddWorker(TaskId task, ReconnectingStream* stream) {
  WorkerRecord& record = records_.emplace_back();
  record.worker = static_cast<int>(records_.size()) - 1;
  record.state_since = clock_->Now();
  tasks_.push_back(task);
  streams_.push_back(stream);
}

void WorkerSessions::NoteDial(int worker, uint64_t session) {
  WorkerRecord& record = records_[worker];
  record.state = State::kOpening;
  record.session = session;
  record.opening_deadline = clock_->Now() + options_.handshake_timeout;
}

void WorkerSessions::NoteAcceptance(WorkerRecord* record,
                                    const proto::SessionAcceptance& acceptance,
                                    bool has_functions) {
  if (record->state != State::kOpening) return;
  stream(*record).MarkEstablished(record->session);
  record->state = State::kOpen;
  record->state_since = clock_->Now();
  record->incarnation = acceptance.incarnation();
  record->known_fingerprints.insert(acceptance.fingerprints().begin(),
                                    acceptance.fingerprints().end());
  record->last_error.clear();
  queue_->WorkerReady(record->worker);
  missing_->MarkPresent(tasks_[record->worker]);
  const bool is_renewed = std::exchange(record->is_renewed, false);
  if (++record->sessions_open_count > 1 && !is_renewed) {
    ++recovered_count_;
    NoteReturn(" has reconnected", *record);
  } else if (record->sessions_open_count == 1 && has_functions) {
    NoteReturn(" has joined", *record);
  }
}

void WorkerSessions::NoteReturn(absl::string_view what,
                                const WorkerRecord& record) {
  timeline_->Note(LogSeverity::kInfo,
                  absl::StrCat(NameOf(record), what, ", incarnation ",
                               IncarnationString(record.incarnation)),
                  {.returned = {tasks_[record.worker].ToString()}});
}

void WorkerSessions::NoteEnd(const absl::Status& reason, WorkerRecord* record) {
  record->last_error = stream(*record).Reason(reason);
  if (record->state == State::kOpen) {
    NoteLoss(record);
  } else {
    NoteRefusal(reason, record);
  }
  record->ResetSession();
}

void WorkerSessions::NoteRefusal(const absl::Status& why,
                                 WorkerRecord* record) {
  constexpr auto kDisagreement = absl::StatusCode::kInvalidArgument;
  const TaskId task = tasks_[record->worker];
  record->has_refused = why.code() == kDisagreement;
  missing_->MarkMissing(task, record->last_error);
  absl::Status fatal =
      FatalRefusal(stream(*record), "worker", kDisagreement, why);
  // If two coordinators start, the one that has a session with worker 0
  // continues, and the other one gives up.
  if (absl::IsPermissionDenied(why)) {
    const absl::Status taken = ServesAnotherCoordinator(
        absl::StrCat(NameOf(*record), " ", record->last_error));
    if (record->worker == 0) fatal = taken;
    missing_->MarkServesAnother(task, taken);
  }
  if (!fatal.ok()) missing_->Fail(fatal);
}

void WorkerSessions::NoteLoss(WorkerRecord* record) {
  const int64_t requeued_before = queue_->requeued_count();
  const absl::Status lost = absl::UnavailableError(absl::StrCat(
      NameOf(*record), ", incarnation ", IncarnationString(record->incarnation),
      ", is lost: ", record->last_error));
  queue_->WorkerLost(record->worker, lost);
  ++lost_count_;
  record->state_since = clock_->Now();
  timeline_->Note(
      LogSeverity::kWarning,
      absl::StrCat(lost.message(), "; ",
                   queue_->requeued_count() - requeued_before,
                   HasOtherOpenSession(*record)
                       ? " closures go to other workers"
                       : " closures wait for a worker: no other is left"),
      {.lost = {tasks_[record->worker].ToString()}});
}

void WorkerSessions::NoteTrouble(const absl::Status& trouble, bool is_news,
                                 WorkerRecord* record) {
  const absl::Time now = clock_->Now();
  // Closures that were running together fail together, and count as one error.
  if (now < record->paused_until) return;
  if (record->trouble_count == 0) record->trouble_since = now;
  record->paused_until =
      now + BackoffDelay(options_.retry_pause, ++record->trouble_count,
                         record->session);
  record->trouble = std::string(trouble.message());
  queue_->SetPaused(record->worker, true);
  queue_->RecallUnstarted(record->worker);
  if (now < record->next_trouble_report || !is_news) return;
  record->next_trouble_report =
      now + ReportPace::IntervalAfter(now - record->trouble_since,
                                      options_.trouble_report_interval);
  LOG(WARNING) << NameOf(*record) << " cannot run closures: " << record->trouble
               << "; its closures "
               << (HasOtherOpenSession(*record)
                       ? "go to other workers"
                       : "wait: no other worker is left")
               << ", and it is tried again";
}

void WorkerSessions::NoteLast(absl::Time now, WorkerRecord* record) {
  record->state = State::kEnded;
  record->state_since = now;
  ++ended_count_;
  stream(*record).StopDialling();
}

void WorkerSessions::EndSilent(absl::Time now) {
  for (const WorkerRecord& record : records_) {
    if (record.state == State::kOpen &&
        stream(record).IsSilentFor(options_.heartbeat_timeout)) {
      stream(record).End(
          record.session,
          absl::UnavailableError(
              absl::StrCat("it has been silent for ",
                           absl::FormatDuration(options_.heartbeat_timeout))));
    } else if (record.state == State::kOpening &&
               now >= record.opening_deadline) {
      stream(record).End(
          record.session,
          absl::DeadlineExceededError(
              absl::StrCat("no answer for ",
                           absl::FormatDuration(options_.handshake_timeout))));
    }
  }
}

void WorkerSessions::RenewAll() {
  for (WorkerRecord& record : records_) Renew(&record);
}

void WorkerSessions::Renew(WorkerRecord* record) {
  if (record->state == State::kEnded || record->state == State::kClosed) return;
  if (record->state == State::kOpen) {
    queue_->WorkerReleased(record->worker);
    record->is_renewed = true;
  }
  stream(*record).Renew(record->session);
  record->ResetSession();
}

void WorkerSessions::EndPauses() {
  for (WorkerRecord& record : records_) {
    record.trouble_count = 0;
    record.paused_until = absl::InfinitePast();
  }
}

absl::Status WorkerSessions::BeginLeaving(int worker,
                                          absl::AnyInvocable<void()> on_left) {
  WorkerRecord& record = records_[worker];
  if (record.state != State::kOpen) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(record), " is ",
        record.state == State::kEnded ? "no part of the job any more"
                                      : "not connected",
        "; there is nothing to drain"));
  }
  const bool others_stay = std::any_of(
      records_.begin(), records_.end(), [&](const WorkerRecord& other) {
        return &other != &record && !other.is_leaving &&
               other.state == State::kOpen;
      });
  if (!others_stay) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(record),
        " is the only worker that is connected: without it no worker trains. "
        "End "
        "the job with musterctl stop, or start another worker first"));
  }
  if (!record.is_leaving) {
    timeline_->Note(LogSeverity::kInfo,
                    absl::StrCat(NameOf(record), " is drained"), {});
  }
  record.is_leaving = true;
  record.on_left.push_back(std::move(on_left));
  queue_->SetPaused(worker, true);
  queue_->RecallUnstarted(worker);
  return absl::OkStatus();
}

bool WorkerSessions::HasOtherOpenSession(const WorkerRecord& record) const {
  return std::any_of(records_.begin(), records_.end(), [&](const auto& other) {
    return &other != &record && other.state == State::kOpen;
  });
}

absl::Time WorkerSessions::NextEndOfPause(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const WorkerRecord& record : records_) {
    if (record.paused_until > now) next = std::min(next, record.paused_until);
  }
  return next;
}

bool WorkerSessions::AllPresentHaveEnded() const {
  return std::all_of(
      records_.begin(), records_.end(), [](const WorkerRecord& record) {
        return record.state == State::kClosed || record.state == State::kEnded;
      });
}

void WorkerSessions::AddStatus(const ClusterSpec& cluster,
                               StatusReport* report) const {
  const absl::Time now = clock_->Now();
  for (const WorkerRecord& record : records_) {
    const TaskId id = tasks_[record.worker];
    TaskStatus& task = report->tasks.emplace_back();
    task.task = id.ToString();
    task.address = cluster.Address(id).value_or("");
    task.incarnation = record.incarnation;
    task.in_state = now - record.state_since;
    task.problem =
        record.last_error.empty() ? record.trouble : record.last_error;
    if (record.is_leaving && record.state != State::kEnded) {
      task.problem = "is being drained";
    }
    task.closures_in_flight = queue_->in_flight_count(record.worker);
    task.closures_done = record.done_count;
    task.closure_time = queue_->closure_time(record.worker);
    switch (record.state) {
      case State::kOpen:
        task.state = TaskStatus::State::kConnected;
        break;
      case State::kEnded:
        task.state = TaskStatus::State::kEnded;
        break;
      case State::kClosed:
      case State::kOpening:
        // A worker whose session is replaced on purpose is not lost.
        task.state = record.is_renewed ? TaskStatus::State::kConnected
                     : record.sessions_open_count == 0
                         ? TaskStatus::State::kConnecting
                         : TaskStatus::State::kLost;
        break;
    }
  }
}

std::string WorkerSessions::Describe() const {
  std::string text;
  for (const WorkerRecord& record : records_) {
    const std::string state = queue_->DescribeWorker(record.worker);
    const std::string& why =
        record.last_error.empty() ? record.trouble : record.last_error;
    if (state.empty() && why.empty()) continue;
    absl::StrAppend(&text, "; ", NameOf(record), state.empty() ? "" : " ",
                    state, why.empty() ? "" : ": ", why);
  }
  return text;
}

}  // namespace muster
