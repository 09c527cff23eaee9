#include "coordinator/closure_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/status_message.h"

namespace muster {
namespace {

// Limit on the number of closures, finished or not, between the low-water mark
// and the newest id, as a multiple of the limit on queued closures.
constexpr int kSpanFactor = 4;

constexpr size_t kListedFailuresMax = 16;

absl::Status SuspectError(uint64_t id, int attempts, const absl::Status& why) {
  return absl::AbortedError(absl::StrCat(
      "closure ", id, " was running on ", attempts,
      " workers when they were lost, so it probably caused the losses and is "
      "not retried; the last loss: ",
      why.message()));
}

}  // namespace

ClosureQueue::ClosureQueue(const Options& options)
    : options_(options),
      first_id_(options.first_id),
      mark_max_(options.low_water_mark_max),
      worker_states_(options.worker_count, WorkerState(options)),
      rounds_(options.rounds) {
  MUSTER_CHECK(options.worker_count > 0 && options.runner_count > 0);
  MUSTER_CHECK(options.first_id > 0);
}

bool ClosureQueue::HasRoom() const {
  const size_t span_max =
      static_cast<size_t>(kSpanFactor) * options_.queued_closures_max;
  return queued_count_ < options_.queued_closures_max &&
         entries_.size() < span_max;
}

void ClosureQueue::ContinueAt(uint64_t id) {
  MUSTER_CHECK(entries_.empty() && idle());
  first_id_ = id;
}

std::shared_ptr<RemoteValueState> ClosureQueue::Add(ClosureWork work) {
  MUSTER_CHECK(!failing());
  const uint64_t id = next_id();
  auto value = std::make_shared<RemoteValueState>(id);
  Entry& entry = entries_.emplace_back();
  entry.work = std::move(work);
  entry.value = value;
  pending_.push_back(id);
  ++queued_count_;
  return value;
}

void ClosureQueue::Cancel(uint64_t id) {
  Entry* const entry = Find(id);
  if (entry == nullptr || entry->state == State::kFinished) return;
  if (entry->state == State::kInFlight) {
    entry->is_cancelled = true;
    Recall(id, entry);
    return;
  }
  --queued_count_;
  MarkCancelled(entry, id, "before it was started");
  DropFinished();
  DropCancelledFromPending();
}

void ClosureQueue::CancelAll() {
  const uint64_t end_id = next_id();
  for (uint64_t id = first_id_; id < end_id; ++id) Cancel(id);
}

void ClosureQueue::WorkerReady(int worker) {
  WorkerState& worker_state = worker_states_[worker];
  MUSTER_CHECK(!worker_state.ready && worker_state.in_flight.empty());
  worker_state.ready = true;
  RecallForIdleWorkers();
}

void ClosureQueue::WorkerLost(int worker, const absl::Status& why) {
  WorkerState& worker_state = worker_states_[worker];
  const std::deque<uint64_t> held = std::exchange(worker_state.in_flight, {});
  worker_state = WorkerState(options_);
  // Only running closures can have caused the loss; the others had not started.
  for (size_t i = 0; i < held.size(); ++i) {
    if (static_cast<int>(i) < options_.runner_count) ++Find(held[i])->attempts;
  }
  // In reverse order, so that the oldest closure ends up at the head.
  std::vector<absl::Status> repeated_failures;
  for (size_t i = held.size(); i-- > 0;) {
    const uint64_t id = held[i];
    Entry* const entry = Find(id);
    --in_flight_count_;
    if (entry->is_cancelled || failing()) {
      LeaveRound(*entry);
      MarkCancelled(entry, id, "while its worker was lost");
    } else if (entry->attempts >= options_.attempts_max) {
      repeated_failures.push_back(SuspectError(id, entry->attempts, why));
      entry->value->SetError(repeated_failures.back());
      MarkFinished(entry);
    } else {
      Requeue(id, entry);
      ++requeued_count_;
    }
  }
  DropFinished();
  for (const absl::Status& suspect : repeated_failures) StoreFailure(suspect);
}

void ClosureQueue::WorkerReleased(int worker) {
  const std::deque<uint64_t> held =
      std::exchange(worker_states_[worker].in_flight, {});
  worker_states_[worker] = WorkerState(options_);
  for (size_t i = held.size(); i-- > 0;) {
    Entry* const entry = Find(held[i]);
    --in_flight_count_;
    if (entry->is_cancelled || failing()) {
      LeaveRound(*entry);
      MarkCancelled(entry, held[i], "while it was under way");
    } else {
      Requeue(held[i], entry);
      ++requeued_count_;
    }
  }
  DropFinished();
}

void ClosureQueue::RecallUnstarted() {
  for (size_t worker = 0; worker < worker_states_.size(); ++worker) {
    RecallUnstarted(static_cast<int>(worker));
  }
}

void ClosureQueue::RecallUnstarted(int worker) {
  const WorkerState& worker_state = worker_states_[worker];
  // From the end: the worker returns the newest closures first.
  for (size_t i = worker_state.in_flight.size();
       i-- > static_cast<size_t>(options_.runner_count);) {
    Recall(worker_state.in_flight[i], Find(worker_state.in_flight[i]));
  }
}

ClosureIds ClosureQueue::RollBack(const ClosureIds& kept) {
  for (Entry& entry : entries_) entry.is_chosen = false;
  if (rounds_.is_synchronous()) rounds_.Begin(0);
  return std::exchange(succeeded_, kept).Minus(kept);
}

void ClosureQueue::SetPaused(int worker, bool is_paused) {
  worker_states_[worker].is_paused = is_paused;
}

ClosureQueue::Entry* ClosureQueue::FrontQueued() {
  while (!pending_.empty()) {
    Entry* const entry = Find(pending_.front());
    if (entry != nullptr && entry->state == State::kQueued) return entry;
    pending_.pop_front();  // It was cancelled.
  }
  return nullptr;
}

bool ClosureQueue::MayStart(const WorkerState& worker_state,
                            const Entry& entry) const {
  return worker_state.in_flight.size() <
             static_cast<size_t>(options_.runner_count) &&
         (entry.is_chosen || rounds_.MayStart());
}

void ClosureQueue::StartInRound(Entry* entry) {
  entry->round = rounds_.Start();
  if (options_.rounds.backup_count == 0) {
    entry->is_chosen = rounds_.Choose(entry->round);
  }
}

bool ClosureQueue::HasClosuresFor(int worker) {
  const WorkerState& worker_state = worker_states_[worker];
  if (rounds_.is_synchronous() && worker_state.MayTake()) {
    const Entry* const front = FrontQueued();
    if (front == nullptr) return false;
    if (front->work.is_synchronous) return MayStart(worker_state, *front);
  }
  const bool may_take = worker_state.MayTake() && queued_count_ > 0 &&
                        static_cast<int>(worker_state.in_flight.size()) <
                            worker_state.window.size();
  const bool is_plenty =
      queued_count_ > static_cast<int64_t>(worker_states_.size());
  if (!may_take || worker_state.in_flight.empty() || is_plenty) return may_take;
  return queued_count_ >
         std::count_if(worker_states_.begin(), worker_states_.end(),
                       [](const WorkerState& other) {
                         return other.MayTake() && other.in_flight.empty();
                       });
}

bool ClosureQueue::HasRecallsFor(int worker) const {
  return !worker_states_[worker].recalls_to_send.empty();
}

void ClosureQueue::Take(int worker, int count_max, std::vector<Taken>* taken) {
  if (!HasClosuresFor(worker)) return;
  WorkerState& worker_state = worker_states_[worker];
  const int64_t ready_count =
      std::count_if(worker_states_.begin(), worker_states_.end(),
                    [](const WorkerState& other) { return other.MayTake(); });
  // If few closures are queued, leaves some for the other workers.
  const int64_t share =
      ready_count == 1
          ? queued_count_
          : std::max<int64_t>(1, queued_count_ / (2 * ready_count));
  const int64_t credit = worker_state.window.size() -
                         static_cast<int64_t>(worker_state.in_flight.size());
  const int64_t count = std::min({share, credit, int64_t{count_max}});
  for (int64_t i = 0; i < count; ++i) {
    Entry* const entry = FrontQueued();
    MUSTER_CHECK(entry != nullptr);
    if (entry->work.is_synchronous) {
      if (!MayStart(worker_state, *entry)) break;
      if (!entry->is_chosen) StartInRound(entry);
    }
    const uint64_t id = pending_.front();
    pending_.pop_front();
    entry->state = State::kInFlight;
    entry->worker = worker;
    worker_state.in_flight.push_back(id);
    --queued_count_;
    ++in_flight_count_;
    // The entry holds one reference. If it is the only one, no caller can
    // request the result.
    taken->push_back({id, entry->work, entry->value.use_count() > 1});
  }
  RecallForIdleWorkers();
}

ClosureQueue::Answers ClosureQueue::TakeAnswers(int worker) {
  return std::exchange(worker_states_[worker].answers, {});
}

absl::Status ClosureQueue::AskPermission(int worker, uint64_t id) {
  WorkerState& worker_state = worker_states_[worker];
  std::vector<uint64_t>& overtaken = worker_state.overtaken;
  if (std::find(overtaken.begin(), overtaken.end(), id) != overtaken.end()) {
    worker_state.answers.denied.push_back(id);
    return absl::OkStatus();
  }
  Entry* const entry = FindInFlight(worker, id);
  if (entry == nullptr) return NotHeld(worker, id);
  const bool is_wanted = !entry->is_cancelled && !failing();
  if (is_wanted && entry->work.is_synchronous && !entry->is_chosen) {
    entry->is_chosen = rounds_.Choose(entry->round);
  }
  if (is_wanted && (entry->is_chosen || !entry->work.is_synchronous)) {
    worker_state.answers.permitted.push_back(id);
  } else {
    worker_state.answers.denied.push_back(id);
  }
  return absl::OkStatus();
}

bool ClosureQueue::EndOvertaken(int worker, uint64_t id) {
  return std::erase(worker_states_[worker].overtaken, id) > 0;
}

void ClosureQueue::LeaveRound(const Entry& entry) {
  if (entry.work.is_synchronous && !entry.is_chosen) {
    rounds_.Leave(entry.round);
  }
}

void ClosureQueue::OvertakeWorkers() {
  if (failing()) return;  // They are recalled.
  for (WorkerState& worker_state : worker_states_) {
    const std::deque<uint64_t> held = worker_state.in_flight;
    for (size_t i = held.size(); i-- > 0;) {
      Entry* const entry = Find(held[i]);
      if (!entry->work.is_synchronous || entry->is_chosen) continue;
      if (entry->is_cancelled) continue;
      LeaveWorker(entry, held[i]);
      worker_state.overtaken.push_back(held[i]);
      Requeue(held[i], entry);
    }
  }
}

std::vector<uint64_t> ClosureQueue::TakeRecalls(int worker) {
  return std::exchange(worker_states_[worker].recalls_to_send, {});
}

absl::Status ClosureQueue::Finish(int worker, uint64_t id,
                                  std::vector<Tensor> results) {
  if (EndOvertaken(worker, id)) return absl::OkStatus();
  Entry* const entry = FindInFlight(worker, id);
  if (entry == nullptr) return NotHeld(worker, id);
  entry->value->SetResults(std::move(results));
  MarkSucceeded(entry, id);
  AfterFinishes();
  return absl::OkStatus();
}

absl::Status ClosureQueue::FinishRange(int worker, uint64_t first_id,
                                       uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t id = first_id + i;
    if (EndOvertaken(worker, id)) continue;
    Entry* const entry = FindInFlight(worker, id);
    if (entry == nullptr) return NotHeld(worker, id);
    entry->value->SetResults({});
    MarkSucceeded(entry, id);
  }
  AfterFinishes();
  return absl::OkStatus();
}

absl::Status ClosureQueue::FinishKept(int worker, uint64_t id,
                                      RemoteValueState::Kept kept) {
  if (EndOvertaken(worker, id)) return absl::OkStatus();
  Entry* const entry = FindInFlight(worker, id);
  if (entry == nullptr) return NotHeld(worker, id);
  entry->value->SetKept(std::move(kept));
  MarkSucceeded(entry, id);
  AfterFinishes();
  return absl::OkStatus();
}

absl::Status ClosureQueue::Fail(int worker, uint64_t id,
                                const absl::Status& status) {
  if (EndOvertaken(worker, id)) return absl::OkStatus();
  Entry* const entry = FindInFlight(worker, id);
  if (entry == nullptr) return NotHeld(worker, id);
  LeaveWorker(entry, id);
  LeaveRound(*entry);
  const absl::Status status_with_closure =
      WithMessage(status, absl::StrCat("closure ", id, " on worker ", worker,
                                       ": ", status.message()));
  const bool was_cancelled =
      entry->is_cancelled && status.code() == absl::StatusCode::kCancelled;
  entry->value->SetError(status_with_closure);
  MarkFinished(entry);
  DropFinished();
  if (!was_cancelled) StoreFailure(status_with_closure);
  return absl::OkStatus();
}

absl::Status ClosureQueue::FailOrRetry(int worker, uint64_t id,
                                       const absl::Status& status) {
  if (EndOvertaken(worker, id)) return absl::OkStatus();
  Entry* const entry = FindInFlight(worker, id);
  if (entry == nullptr) return NotHeld(worker, id);
  if (++entry->retries > options_.retries_max || entry->is_cancelled ||
      failing()) {
    return Fail(worker, id, status);
  }
  LeaveWorker(entry, id);
  Requeue(id, entry);
  ++requeued_count_;
  return absl::OkStatus();
}

absl::Status ClosureQueue::Return(int worker, uint64_t id) {
  if (EndOvertaken(worker, id)) return absl::OkStatus();
  Entry* const entry = FindInFlight(worker, id);
  if (entry == nullptr) return NotHeld(worker, id);
  LeaveWorker(entry, id);
  if (entry->is_cancelled || failing()) {
    LeaveRound(*entry);
    MarkCancelled(entry, id, "before it was started");
    DropFinished();
  } else {
    Requeue(id, entry);
  }
  return absl::OkStatus();
}

void ClosureQueue::ObservePace(int worker, int64_t count, absl::Duration busy) {
  worker_states_[worker].window.Observe(count, busy);
}

void ClosureQueue::Abort(const absl::Status& why) {
  MUSTER_CHECK(!why.ok());
  if (aborted_) return;
  aborted_ = true;
  // The results of closures in flight may never be received.
  for (const Entry& entry : entries_) {
    if (entry.value != nullptr) entry.value->SetError(why);
  }
  // Closures that failed for the same reason may have been reported earlier.
  // `why` becomes the first failure.
  const absl::Status earlier = std::exchange(first_failure_, absl::OkStatus());
  StoreFailure(why);
  if (!earlier.ok()) StoreFailure(earlier);
}

absl::Status ClosureQueue::TakeFailure() {
  MUSTER_CHECK(idle() || aborted_);
  if (first_failure_.ok()) return absl::OkStatus();
  absl::Status failure = first_failure_;
  if (further_failure_count_ > 0) {
    std::string list = absl::StrJoin(further_failures_, "; ");
    const int64_t unlisted =
        further_failure_count_ - static_cast<int64_t>(further_failures_.size());
    if (unlisted > 0) absl::StrAppend(&list, "; and ", unlisted, " more");
    failure = WithMessage(
        failure, absl::StrCat(failure.message(), " [also: ", list, "]"));
  }
  further_failures_.clear();
  further_failure_count_ = 0;
  if (!aborted_) first_failure_ = absl::OkStatus();
  return failure;
}

std::string ClosureQueue::Describe() const {
  std::string text = absl::StrCat(queued_count_, " closures are queued");
  for (int i = 0; i < static_cast<int>(worker_states_.size()); ++i) {
    const std::string worker = DescribeWorker(i);
    if (worker.empty()) continue;
    absl::StrAppend(&text, "; worker ", i, " ", worker);
  }
  return text;
}

std::string ClosureQueue::DescribeWorker(int worker) const {
  const WorkerState& state = worker_states_[worker];
  if (!state.ready) return "is not connected";
  if (state.in_flight.empty()) return "";
  return absl::StrCat("holds ", state.in_flight.size(),
                      ", the oldest is closure ", state.in_flight.front());
}

ClosureQueue::Entry* ClosureQueue::Find(uint64_t id) {
  if (id < first_id_ || id - first_id_ >= entries_.size()) return nullptr;
  return &entries_[id - first_id_];
}

ClosureQueue::Entry* ClosureQueue::FindInFlight(int worker, uint64_t id) {
  Entry* const entry = Find(id);
  if (entry == nullptr || entry->state != State::kInFlight ||
      entry->worker != worker) {
    return nullptr;
  }
  return entry;
}

absl::Status ClosureQueue::NotHeld(int worker, uint64_t id) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "worker ", worker, " reports closure ", id, ", which it does not hold"));
}

void ClosureQueue::LeaveWorker(Entry* entry, uint64_t id) {
  WorkerState& worker_state = worker_states_[entry->worker];
  // Closures finish nearly in order, and recalled ones are returned from the
  // end.
  if (entry->is_recalled && worker_state.in_flight.back() == id) {
    worker_state.in_flight.pop_back();
  } else {
    worker_state.in_flight.erase(std::find(worker_state.in_flight.begin(),
                                           worker_state.in_flight.end(), id));
  }
  if (entry->is_recalled) {
    --worker_state.recalls_unanswered;
    entry->is_recalled = false;
  }
  --in_flight_count_;
}

void ClosureQueue::Requeue(uint64_t id, Entry* entry) {
  LeaveRound(*entry);
  entry->state = State::kQueued;
  entry->is_recalled = false;
  entry->worker = -1;
  // Chosen closures come first: the round waits for them.
  auto position = pending_.begin();
  while (!entry->is_chosen && position != pending_.end()) {
    const Entry* const other = Find(*position);
    if (other == nullptr || !other->is_chosen) break;
    ++position;
  }
  pending_.insert(position, id);
  ++queued_count_;
}

void ClosureQueue::MarkFinished(Entry* entry) {
  entry->state = State::kFinished;
  entry->work = {};
  entry->value.reset();
  ++finished_count_;
}

void ClosureQueue::MarkSucceeded(Entry* entry, uint64_t id) {
  LeaveWorker(entry, id);
  LeaveRound(*entry);
  if (entry->work.has_effects) succeeded_.Add(id);
  const bool was_chosen = std::exchange(entry->is_chosen, false);
  MarkFinished(entry);
  if (was_chosen && rounds_.FinishChosen()) OvertakeWorkers();
}

void ClosureQueue::MarkCancelled(Entry* entry, uint64_t id,
                                 absl::string_view when) {
  entry->value->SetError(absl::CancelledError(
      absl::StrCat("closure ", id, " was cancelled ", when)));
  MarkFinished(entry);
}

void ClosureQueue::AfterFinishes() {
  DropFinished();
  RecallForIdleWorkers();
}

void ClosureQueue::DropFinished() {
  while (!entries_.empty() && entries_.front().state == State::kFinished) {
    entries_.pop_front();
    ++first_id_;
  }
}

void ClosureQueue::DropCancelledFromPending() {
  constexpr int64_t kWorthIt = 64;
  if (static_cast<int64_t>(pending_.size()) <= 2 * queued_count_ + kWorthIt) {
    return;
  }
  std::erase_if(pending_, [this](uint64_t id) {
    const Entry* const entry = Find(id);
    return entry == nullptr || entry->state != State::kQueued;
  });
}

void ClosureQueue::Recall(uint64_t id, Entry* entry) {
  if (entry->is_recalled) return;
  entry->is_recalled = true;
  WorkerState& worker_state = worker_states_[entry->worker];
  ++worker_state.recalls_unanswered;
  worker_state.recalls_to_send.push_back(id);
}

void ClosureQueue::RecallForIdleWorkers() {
  if (queued_count_ > 0 || failing()) return;
  const bool any_worker_idle = std::any_of(
      worker_states_.begin(), worker_states_.end(),
      [](const WorkerState& worker_state) {
        return worker_state.MayTake() && worker_state.in_flight.empty();
      });
  if (!any_worker_idle) return;
  WorkerState* victim = nullptr;
  int unstarted_max = 0;
  for (WorkerState& worker_state : worker_states_) {
    const int unstarted =
        static_cast<int>(worker_state.in_flight.size()) - options_.runner_count;
    // One recall at a time, because the result of the last one is not known
    // yet.
    if (!worker_state.ready || worker_state.recalls_unanswered > 0) continue;
    if (unstarted <= unstarted_max) continue;
    unstarted_max = unstarted;
    victim = &worker_state;
  }
  if (victim == nullptr) return;
  const absl::Duration pace = victim->window.closure_time();
  if (pace > absl::ZeroDuration() &&
      pace * unstarted_max < options_.recall_worth_min) {
    return;
  }
  const int count = (unstarted_max + 1) / 2;
  // The newest closures will start last.
  for (int i = 0; i < count; ++i) {
    const uint64_t id = victim->in_flight[victim->in_flight.size() - 1 - i];
    Recall(id, Find(id));
  }
}

void ClosureQueue::StoreFailure(absl::Status status) {
  if (failing()) {
    ++further_failure_count_;
    if (further_failures_.size() < kListedFailuresMax) {
      further_failures_.push_back(std::string(status.message()));
    }
    return;
  }
  first_failure_ = std::move(status);
  CancelAll();
}

}  // namespace muster
