#include "coordinator/closure_dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/held_lock.h"
#include "common/core/base/log.h"
#include "common/core/base/report_pace.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/identity.h"
#include "coordinator/closure_arguments.h"
#include "coordinator/fatal_refusal.h"
#include "coordinator/kept_result.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

// Closures taken for one message.
constexpr int kClosuresPerMessageMax = 2048;

// A worker with so much to do can wait for a fuller message.
constexpr absl::Duration kBacklogEnough = absl::Milliseconds(1);
constexpr int kClosuresWorthAMessage = 32;

ClosureQueue::Options WithWorkerCount(ClosureQueue::Options options,
                                      size_t worker_count) {
  options.worker_count = static_cast<int>(worker_count);
  return options;
}

}  // namespace

ClosureDispatcher::ClosureDispatcher(
    const Options& options, std::vector<std::unique_ptr<Channel>> channels,
    FailureJudge judge, MissingTasks* missing, Clock* clock)
    : options_(options),
      tasks_(options.cluster.Tasks(TaskType::kWorker)),
      judge_(std::move(judge)),
      clock_(clock),
      releases_(std::make_shared<ReleaseList>()),
      missing_(missing),
      loop_(
          options.heartbeat_interval,
          [this](const TickLoop::Turn& turn) { return TakeTurn(turn); }, clock),
      queue_(WithWorkerCount(options.queue, channels.size())),
      records_(channels.size()) {
  ReconnectingStream::Listener* const listener = this;
  for (size_t i = 0; i < channels.size(); ++i) {
    records_[i].worker = static_cast<int>(i);
    records_[i].state_since = clock_->Now();
    streams_.push_back(std::make_unique<ReconnectingStream>(
        ReconnectingStream::Options{.method = std::string(kWorkerSessionMethod),
                                    .peer = static_cast<int>(i),
                                    .backoff = options.reconnect},
        std::move(channels[i]), listener, &loop_));
  }
  loop_.Start();
}

ClosureDispatcher::~ClosureDispatcher() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    if (!is_aborted_) {
      queue_.Abort(absl::CancelledError("the coordinator is shutting down"));
    }
  }
  loop_.Stop();
  for (const auto& stream : streams_) stream->Stop();
}

uint32_t ClosureDispatcher::AddFunction(absl::string_view name,
                                        std::string serialized_graph) {
  const uint64_t fingerprint = GraphFingerprint(serialized_graph);
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i].fingerprint == fingerprint) {
      return static_cast<uint32_t>(i);
    }
  }
  functions_.push_back({.fingerprint = fingerprint,
                        .serialized_graph = std::move(serialized_graph),
                        .name = std::string(name)});
  return static_cast<uint32_t>(functions_.size() - 1);
}

uint32_t ClosureDispatcher::AddIterator(IteratorRecord iterator) {
  MUSTER_CHECK(iterator.contexts.size() == streams_.size());
  absl::MutexLock lock(&mutex_);
  iterators_.push_back(std::move(iterator));
  return static_cast<uint32_t>(iterators_.size() - 1);
}

absl::StatusOr<RemoteValue> ClosureDispatcher::Schedule(
    ClosureWork work, absl::Duration timeout) {
  RemoteValue value;
  {
    absl::MutexLock lock(&mutex_);
    if (!MaySchedule()) {
      const absl::Time started = clock_->Now();
      if (!Await(&ClosureDispatcher::MaySchedule, started + timeout)) {
        return TimedOut("Schedule", clock_->Now() - started);
      }
    }
    if (queue_.failing()) return queue_.TakeFailure();
    value = RemoteValue(queue_.Add(std::move(work)));
    if (!has_idle_worker_) {
      // Waking costs more than queueing, so it is left out where no worker
      // could take the closure anyway: then a report causes the next turn.
      if (has_free_capacity_ ||
          queue_.queued_count() % kClosuresWorthAMessage == 0) {
        loop_.Wake();
      }
      return value;
    }
  }
  // A worker waits, and would wait longer if the loop's thread had to be woken.
  Dispatch();
  return value;
}

absl::Status ClosureDispatcher::Join(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Time started = clock_->Now();
  if (!Await(&ClosureDispatcher::IsSettled, deadline)) {
    return TimedOut("Join", clock_->Now() - started);
  }
  return queue_.TakeFailure();
}

absl::StatusOr<bool> ClosureDispatcher::Done() {
  absl::MutexLock lock(&mutex_);
  if (!IsSettled()) return false;
  RETURN_IF_ERROR(queue_.TakeFailure());
  return true;
}

void ClosureDispatcher::Cancel(uint64_t closure_id) {
  absl::MutexLock lock(&mutex_);
  queue_.Cancel(closure_id);
  loop_.Wake();
}

void ClosureDispatcher::CancelAll() {
  absl::MutexLock lock(&mutex_);
  queue_.CancelAll();
  loop_.Wake();
}

void ClosureDispatcher::Abort(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (is_aborted_) return;
  is_aborted_ = true;
  why_aborted_ = why;
  queue_.Abort(why);
  loop_.Wake();
}

absl::StatusOr<std::vector<Tensor>> ClosureDispatcher::Fetch(
    const RemoteValue& value, absl::Time deadline) {
  if (!value.valid()) {
    return absl::InvalidArgumentError("this RemoteValue is of no closure");
  }
  const absl::Time started = clock_->Now();
  RemoteValueState* const state = value.state().get();
  if (!state->AwaitDone(deadline)) {
    absl::MutexLock lock(&mutex_);
    return TimedOut(absl::StrCat("Fetch of closure ", value.closure_id()),
                    clock_->Now() - started);
  }
  RETURN_IF_ERROR(state->status());
  const auto keeper = state->keeper();
  if (!keeper.has_value()) return state->results();
  ASSIGN_OR_RETURN(std::vector<Tensor> results,
                   FetchKeptResult(
                       *keeper, value.closure_id(), deadline,
                       [this, &keeper] { return IsOpen(*keeper); },
                       &channel(keeper->worker_index), clock_));
  state->SetFetched(results);
  return results;
}

bool ClosureDispatcher::IsOpen(const RemoteValueState::Keeper& keeper) const {
  absl::MutexLock lock(&mutex_);
  return records_[keeper.worker_index].session == keeper.session &&
         !is_stopping_;
}

ClosureDispatcher::Counters ClosureDispatcher::counters() const {
  absl::MutexLock lock(&mutex_);
  Counters counters = {.finished_count = queue_.finished_count(),
                       .requeued_count = queue_.requeued_count(),
                       .lost_count = lost_count_,
                       .recovered_count = recovered_count_,
                       .queued_count = queue_.queued_count(),
                       .in_flight_count = queue_.in_flight_count()};
  for (const FunctionRecord& function : functions_) {
    counters.busy += function.step_durations->total();
  }
  return counters;
}

DurationHistogram ClosureDispatcher::StepDurations(uint32_t function_id) const {
  absl::MutexLock lock(&mutex_);
  return *functions_[function_id].step_durations;
}

Message ClosureDispatcher::OnDial(int worker, uint64_t session) {
  proto::WorkerCommand command;
  proto::SessionOpening* const opening = command.mutable_opening();
  opening->set_version(options_.version);
  *opening->mutable_cluster() = EncodeCluster(options_.cluster);
  opening->set_worker_index(tasks_[worker].index);
  opening->set_coordinator(options_.coordinator);
  opening->set_job_seed(options_.job_seed);
  opening->set_runner_count(options_.queue.runner_count);
  opening->set_heartbeat_interval_ms(
      absl::ToInt64Milliseconds(options_.heartbeat_interval));
  opening->set_heartbeat_timeout_ms(
      absl::ToInt64Milliseconds(options_.heartbeat_timeout));

  absl::MutexLock lock(&mutex_);
  opening->set_generation(generation_);
  WorkerRecord& record = records_[worker];
  record.state = WorkerRecord::State::kOpening;
  record.session = session;
  record.opening_deadline = clock_->Now() + options_.handshake_timeout;
  return Message{command.SerializeAsString(), {}};
}

void ClosureDispatcher::OnMessage(int worker, uint64_t session,
                                  ReceivedMessage message) {
  const auto report = message.ParseBody<proto::WorkerReport>();
  const auto tensors = message.ToTensors();
  absl::Status status = report.status();
  status.Update(tensors.status());
  bool has_more_to_send = false;
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    WorkerRecord& record = records_[worker];
    if (record.session != session || is_stopping_) return;
    status = TakeIn(*report, *tensors, &record);
    NoteCapacity(record);
    has_more_to_send =
        !queue_.idle() || record.is_leaving || report->has_acceptance();
  }
  if (!status.ok()) streams_[worker]->End(session, status);
  if (has_more_to_send) Dispatch();
}

absl::Status ClosureDispatcher::TakeIn(const proto::WorkerReport& report,
                                       absl::Span<const Tensor> tensors,
                                       WorkerRecord* record) {
  if (report.has_acceptance()) Accept(record, report.acceptance());
  if (record->state != WorkerRecord::State::kOpen) return absl::OkStatus();
  absl::Status trouble;
  RETURN_IF_ERROR(TakeReport(report, tensors, *record, judge_, releases_,
                             &queue_, &trouble));
  if (!trouble.ok()) {
    NoteTrouble(record, trouble);
  } else if (report.finished_size() + report.results_size() > 0) {
    record->trouble.clear();
    record->trouble_count = 0;
  }
  record->done_count += report.results_size();
  for (const proto::ClosureRange& range : report.finished()) {
    record->done_count += range.count();
  }
  return AddStepDurations(report, &functions_);
}

void ClosureDispatcher::Accept(WorkerRecord* record,
                               const proto::SessionAcceptance& acceptance) {
  if (record->state != WorkerRecord::State::kOpening) return;
  ReconnectingStream& stream = *streams_[record->worker];
  stream.MarkEstablished(record->session);
  record->state = WorkerRecord::State::kOpen;
  record->state_since = clock_->Now();
  record->incarnation = acceptance.incarnation();
  record->fingerprints_there.insert(acceptance.fingerprints().begin(),
                                    acceptance.fingerprints().end());
  record->last_error.clear();
  queue_.WorkerReady(record->worker);
  missing_->MarkPresent(tasks_[record->worker]);
  const bool is_renewed = std::exchange(record->is_renewed, false);
  if (++record->sessions_open_count > 1 && !is_renewed) {
    ++recovered_count_;
    LOG(INFO) << channel(record->worker).peer() << " is back, incarnation "
              << IncarnationString(record->incarnation);
  } else if (record->sessions_open_count == 1 && !functions_.empty()) {
    LOG(INFO) << channel(record->worker).peer() << " has joined, incarnation "
              << IncarnationString(record->incarnation);
  }
}

void ClosureDispatcher::OnEnd(int worker, uint64_t session,
                              const absl::Status& why) {
  const absl::Status reason =
      why.ok() ? absl::UnavailableError("it closed the session") : why;
  std::vector<absl::AnyInvocable<void()>> on_left;
  {
    absl::MutexLock lock(&mutex_);
    WorkerRecord& record = records_[worker];
    if (record.session != session) return;
    if (record.state == WorkerRecord::State::kEnded) {
      on_left.swap(record.on_left);
    } else {
      NoteEnd(reason, &record);
    }
  }
  for (auto& each : on_left) each();
}

void ClosureDispatcher::NoteEnd(const absl::Status& reason,
                                WorkerRecord* ended) {
  WorkerRecord& record = *ended;
  const int worker = record.worker;
  record.last_error = streams_[worker]->Reason(reason);
  if (record.state == WorkerRecord::State::kOpen) {
    NoteLoss(ended);
  } else {
    NoteRefusal(ended, reason);
  }
  record.BeginAnew();
}

void ClosureDispatcher::NoteRefusal(WorkerRecord* record,
                                    const absl::Status& why) {
  constexpr auto kDisagreement = absl::StatusCode::kInvalidArgument;
  record->has_refused = why.code() == kDisagreement;
  missing_->MarkMissing(tasks_[record->worker], record->last_error);
  absl::Status fatal =
      FatalRefusal(*streams_[record->worker], "worker", kDisagreement, why);
  // Of two coordinators that start, the one that has the first worker
  // continues, and the other gives up.
  if (absl::IsPermissionDenied(why)) {
    const absl::Status taken = TakenByAnother(
        absl::StrCat(channel(record->worker).peer(), " ", record->last_error));
    if (record->worker == 0) fatal = taken;
    missing_->MarkTaken(tasks_[record->worker], taken);
  }
  if (!fatal.ok()) missing_->Fail(fatal);
}

bool ClosureDispatcher::HasRefused(int worker) const {
  absl::MutexLock lock(&mutex_);
  return records_[worker].has_refused;
}

void ClosureDispatcher::NoteTrouble(WorkerRecord* record,
                                    const absl::Status& trouble) {
  const absl::Time now = clock_->Now();
  // The closures it held fail together, and count once.
  if (now < record->paused_until) return;
  if (record->trouble_count == 0) record->trouble_since = now;
  record->paused_until =
      now + BackoffDelay(options_.retry_pause, ++record->trouble_count,
                         record->session);
  record->trouble = std::string(trouble.message());
  loop_.Wake();  // For a turn at the end of the pause.
  queue_.SetPaused(record->worker, true);
  queue_.RecallUnstarted(record->worker);
  if (now < record->next_trouble_report || is_suspended_) return;
  record->next_trouble_report =
      now + ReportPace::IntervalAfter(now - record->trouble_since,
                                      options_.trouble_report_interval);
  LOG(WARNING) << channel(record->worker).peer()
               << " cannot continue: " << record->trouble << "; its closures "
               << (HasOtherOpenSession(*record)
                       ? "go to other workers"
                       : "wait: no other worker is left")
               << ", and it is tried again";
}

void ClosureDispatcher::NoteLoss(WorkerRecord* record) {
  const int64_t requeued_before = queue_.requeued_count();
  const absl::Status lost = absl::UnavailableError(
      absl::StrCat(channel(record->worker).peer(), ", incarnation ",
                   IncarnationString(record->incarnation),
                   ", is lost: ", record->last_error));
  queue_.WorkerLost(record->worker, lost);
  ++lost_count_;
  record->state_since = clock_->Now();
  LOG(WARNING) << lost.message() << "; "
               << queue_.requeued_count() - requeued_before
               << (HasOtherOpenSession(*record)
                       ? " closures go to other workers"
                       : " closures wait for a worker: no other is left");
}

bool ClosureDispatcher::HasOtherOpenSession(const WorkerRecord& record) const {
  return std::any_of(records_.begin(), records_.end(), [&](const auto& other) {
    return &other != &record && other.state == WorkerRecord::State::kOpen;
  });
}

absl::Time ClosureDispatcher::TakeTurn(const TickLoop::Turn& turn) {
  absl::Time next_turn = absl::InfiniteFuture();
  for (const auto& stream : streams_) {
    next_turn = std::min(next_turn, stream->Advance(turn));
  }
  {
    absl::MutexLock lock(&mutex_);
    if (turn.is_tick) EndSilentSessions(turn.now);
    for (const WorkerRecord& record : records_) {
      if (record.paused_until > turn.now) {
        next_turn = std::min(next_turn, record.paused_until);
      }
    }
  }
  absl::MutexLock sending(&sending_mutex_);
  SendCommands(turn);
  return next_turn;
}

void ClosureDispatcher::Dispatch() {
  // The loop's next turn sends what the present sender has not seen.
  if (!sending_mutex_.TryLock()) {
    loop_.Wake();
    return;
  }
  const HeldLock sending(&sending_mutex_);
  SendCommands({.now = clock_->Now()});
}

void ClosureDispatcher::SendCommands(const TickLoop::Turn& turn) {
  std::vector<Command> commands;
  {
    absl::MutexLock lock(&mutex_);
    commands = PlanCommands(turn);
  }
  for (Command& command : commands) SendCommand(&command);
}

void ClosureDispatcher::NoteCapacity(const WorkerRecord& record) {
  if (record.state != WorkerRecord::State::kOpen || is_suspended_ ||
      drain_count_ > 0) {
    return;
  }
  const int64_t in_flight_count = queue_.in_flight_count(record.worker);
  has_idle_worker_ |=
      in_flight_count == 0 && !record.is_leaving && record.trouble.empty();
  has_free_capacity_ |= in_flight_count < queue_.window_size(record.worker);
}

void ClosureDispatcher::EndSilentSessions(absl::Time now) {
  for (const WorkerRecord& record : records_) {
    ReconnectingStream& stream = *streams_[record.worker];
    if (record.state == WorkerRecord::State::kOpen &&
        stream.IsSilentFor(options_.heartbeat_timeout)) {
      stream.End(record.session,
                 absl::UnavailableError(absl::StrCat(
                     "it has been silent for ",
                     absl::FormatDuration(options_.heartbeat_timeout))));
    } else if (record.state == WorkerRecord::State::kOpening &&
               now >= record.opening_deadline) {
      stream.End(record.session,
                 absl::DeadlineExceededError(absl::StrCat(
                     "no answer for ",
                     absl::FormatDuration(options_.handshake_timeout))));
    }
  }
}

std::vector<ClosureDispatcher::Command> ClosureDispatcher::PlanCommands(
    const TickLoop::Turn& turn) {
  for (const ReleaseList::Entry& entry : releases_->Take()) {
    WorkerRecord& record = records_[entry.worker];
    if (record.session == entry.session) {
      record.released.push_back(entry.closure_id);
    }
  }
  std::vector<Command> commands;
  has_free_capacity_ = false;
  has_idle_worker_ = false;
  for (WorkerRecord& record : records_) {
    if (record.state != WorkerRecord::State::kOpen) continue;
    std::optional<Command> command = PlanCommand(turn, &record);
    if (command.has_value()) commands.push_back(*std::move(command));
    NoteCapacity(record);
  }
  return commands;
}

std::optional<ClosureDispatcher::Command> ClosureDispatcher::PlanCommand(
    const TickLoop::Turn& turn, WorkerRecord* record) {
  const int worker = record->worker;
  Command plan = {.worker = worker, .session = record->session};
  queue_.SetPaused(worker,
                   record->is_leaving || turn.now < record->paused_until);
  // A tick's command is the heartbeat, which may be empty.
  bool has_content = turn.is_tick;
  if (!is_suspended_ && drain_count_ == 0 && queue_.HasClosuresFor(worker) &&
      (queue_.queued_count() >= kClosuresWorthAMessage ||
       queue_.backlog(worker) < kBacklogEnough)) {
    AddDefinitions(functions_, iterators_, record, &plan.command);
    queue_.Take(worker, kClosuresPerMessageMax, &plan.closures);
    has_content = true;
    // There may be more for this worker than its share, or for another.
    if (queue_.queued_count() > 0) loop_.Wake();
  }
  if (queue_.HasRecallsFor(worker)) {
    const auto recalled = queue_.TakeRecalls(worker);
    plan.command.mutable_recalled()->Add(recalled.begin(), recalled.end());
    has_content = true;
  }
  if (!record->released.empty()) {
    plan.command.mutable_released()->Add(record->released.begin(),
                                         record->released.end());
    record->released.clear();
    has_content = true;
  }
  const bool has_left =
      record->is_leaving && queue_.in_flight_count(worker) == 0;
  if (job_end_.has_value() || has_left) {
    // A drained worker ends with status 0.
    *plan.command.mutable_job_end() = job_end_.value_or(proto::JobEnd());
    record->state = WorkerRecord::State::kEnded;
    record->state_since = turn.now;
    ++ended_worker_count_;
    streams_[worker]->StopDialling();
    has_content = true;
  }
  if (!has_content) return std::nullopt;
  if (record->mark_told != queue_.low_water_mark()) {
    record->mark_told = queue_.low_water_mark();
    plan.command.set_low_water_mark(record->mark_told);
  }
  return plan;
}

void ClosureDispatcher::SendCommand(Command* command) {
  Message message;
  AddClosures(command->closures, command->worker,
              shared_batches_.load(std::memory_order_acquire),
              &command->command, &message.tensors);
  message.body = command->command.SerializeAsString();
  ReconnectingStream& stream = *streams_[command->worker];
  const absl::Status fault = FaultPoint("coordinator.before_send");
  if (!fault.ok()) {
    stream.End(command->session, fault);
    return;
  }
  const absl::Status sent = stream.Send(command->session, message);
  // OnEnd() tells why a session has ended.
  if (!sent.ok() && !absl::IsUnavailable(sent)) {
    stream.End(command->session, sent);
  }
}

}  // namespace muster
