#include "coordinator/closure_dispatcher.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/held_lock.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/identity.h"
#include "coordinator/command_plan.h"
#include "coordinator/fatal_refusal.h"
#include "coordinator/kept_result.h"
#include "coordinator/per_worker_dataset.h"
#include "proto/worker.pb.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

// Time that a lost worker has to return at the end of the job, and if the job
// ends with an error.
constexpr absl::Duration kAbsentWorkerTimeout = absl::Seconds(3);
constexpr absl::Duration kAbsentWorkerGrace = absl::Milliseconds(300);

ClosureQueue::Options QueueOptions(const ClosureDispatcher::Options& options,
                                   size_t worker_count) {
  ClosureQueue::Options queue = options.queue;
  queue.worker_count = static_cast<int>(worker_count);
  queue.first_id = options.closure_ids.first_id;
  return queue;
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
      loop_(
          options.heartbeat_interval,
          [this](const TickLoop::Turn& turn) { return TakeTurn(turn); }, clock),
      closure_ids_(options.closure_ids),
      timeline_(clock),
      queue_(QueueOptions(options, channels.size())),
      sessions_({.heartbeat_timeout = options.heartbeat_timeout,
                 .handshake_timeout = options.handshake_timeout,
                 .retry_pause = options.retry_pause,
                 .trouble_report_interval = options.trouble_report_interval},
                &queue_, missing, &timeline_, clock),
      generation_(options.generation) {
  ReconnectingStream::Listener* const listener = this;
  for (size_t i = 0; i < channels.size(); ++i) {
    streams_.push_back(std::make_unique<ReconnectingStream>(
        ReconnectingStream::Options{.method = std::string(kWorkerSessionMethod),
                                    .peer = static_cast<int>(i),
                                    .backoff = options.reconnect},
        std::move(channels[i]), listener, &loop_));
    sessions_.AddWorker(tasks_[i], streams_.back().get());
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
  absl::MutexLock lock(&mutex_);
  return definitions_.AddFunction(name, std::move(serialized_graph));
}

uint32_t ClosureDispatcher::AddIterator(IteratorRecord iterator) {
  MUSTER_CHECK(iterator.contexts.size() == streams_.size());
  absl::MutexLock lock(&mutex_);
  return definitions_.AddIterator(std::move(iterator));
}

absl::StatusOr<RemoteValue> ClosureDispatcher::Schedule(
    ClosureWork work, absl::Duration timeout) {
  RemoteValue value;
  while (!value.valid()) {
    uint64_t id = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (!MaySchedule()) {
        const absl::Time started = clock_->Now();
        if (!Await(&ClosureDispatcher::MaySchedule, started + timeout)) {
          return TimedOut("Schedule", clock_->Now() - started);
        }
      }
      if (queue_.failing()) return queue_.TakeFailure();
      id = queue_.next_id();
      if (id < closure_ids_.limit()) {
        value = RemoteValue(queue_.Add(std::move(work)));
        if (!has_idle_worker_) {
          WakeForQueued();
          return value;
        }
      }
    }
    // Without the lock: recording takes as long as the disk.
    if (!value.valid()) RETURN_IF_ERROR(closure_ids_.Reserve(id));
  }
  // A worker is idle. It would wait longer if the loop had to be woken.
  Dispatch();
  return value;
}

void ClosureDispatcher::WakeForQueued() {
  // Waking the loop costs more than queueing the closure. If no worker could
  // take the closure now, the loop is not woken: the next report of a worker
  // causes the next turn.
  if (has_free_capacity_ ||
      queue_.queued_count() % kClosuresWorthAMessage == 0) {
    loop_.Wake();
  }
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
    return absl::InvalidArgumentError("this RemoteValue belongs to no closure");
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
  return sessions_.records()[keeper.worker_index].session == keeper.session &&
         !is_stopping_;
}

ClosureDispatcher::Counters ClosureDispatcher::counters() const {
  absl::MutexLock lock(&mutex_);
  return {.finished_count = queue_.finished_count(),
          .requeued_count = queue_.requeued_count(),
          .lost_count = sessions_.lost_count(),
          .recovered_count = sessions_.recovered_count(),
          .busy = definitions_.TotalStepDuration(),
          .queued_count = queue_.queued_count(),
          .in_flight_count = queue_.in_flight_count()};
}

DurationHistogram ClosureDispatcher::StepDurations(uint32_t function_id) const {
  absl::MutexLock lock(&mutex_);
  return definitions_.StepDurations(function_id);
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
  opening->set_coordinator_return_timeout_ms(
      absl::ToInt64Milliseconds(options_.coordinator_return_timeout));
  opening->set_closures_per_update(options_.queue.rounds.gradient_count);
  opening->set_gradients_need_permission(options_.queue.rounds.backup_count >
                                         0);
  if (options_.server_copy_count > 1) {
    const std::vector<int> serving_tasks = options_.serving_tasks();
    opening->set_server_copy_count(options_.server_copy_count);
    opening->mutable_serving_tasks()->Assign(serving_tasks.begin(),
                                             serving_tasks.end());
  }

  absl::MutexLock lock(&mutex_);
  opening->set_generation(generation_);
  sessions_.NoteDial(worker, session);
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
    WorkerRecord& record = sessions_.records()[worker];
#ifdef MUSTER_PLANT_STALE_REPORTS
    session = record.session;
#endif
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
  if (report.has_acceptance()) {
    sessions_.NoteAcceptance(record, report.acceptance(),
                             definitions_.has_functions());
  }
  if (record->state != WorkerRecord::State::kOpen) return absl::OkStatus();
  absl::Status trouble;
  RETURN_IF_ERROR(TakeReport(report, tensors, *record, judge_, releases_,
                             &queue_, &trouble));
  if (!trouble.ok()) {
    sessions_.NoteTrouble(trouble, /*is_news=*/!is_suspended_, record);
    loop_.Wake();  // The turn at the end of the pause resumes the worker.
  } else if (report.finished_size() + report.results_size() > 0) {
    record->trouble.clear();
    record->trouble_count = 0;
  }
  record->done_count += report.results_size();
  for (const proto::ClosureRange& range : report.finished()) {
    record->done_count += range.count();
  }
  return definitions_.AddStepDurations(report);
}

void ClosureDispatcher::OnEnd(int worker, uint64_t session,
                              const absl::Status& why) {
  const absl::Status reason =
      why.ok() ? absl::UnavailableError("it closed the session") : why;
  if (IsOfEarlierCoordinator(why)) Abort(ReplacedByNewerCoordinator(why));
  std::vector<absl::AnyInvocable<void()>> on_left;
  {
    absl::MutexLock lock(&mutex_);
    WorkerRecord& record = sessions_.records()[worker];
    if (record.session != session) return;
    if (record.state == WorkerRecord::State::kEnded) {
      on_left.swap(record.on_left);
    } else {
      sessions_.NoteEnd(reason, &record);
    }
  }
  for (auto& each : on_left) each();
}

bool ClosureDispatcher::HasRefused(int worker) const {
  absl::MutexLock lock(&mutex_);
  return sessions_.records()[worker].has_refused;
}

absl::Time ClosureDispatcher::TakeTurn(const TickLoop::Turn& turn) {
  absl::Time next_turn = absl::InfiniteFuture();
  for (const auto& stream : streams_) {
    next_turn = std::min(next_turn, stream->Advance(turn));
  }
  {
    absl::MutexLock lock(&mutex_);
    if (turn.is_tick) sessions_.EndSilent(turn.now);
    next_turn = std::min(next_turn, sessions_.NextEndOfPause(turn.now));
  }
  absl::MutexLock sending(&sending_mutex_);
  SendCommands(turn);
  return next_turn;
}

void ClosureDispatcher::Dispatch() {
  // If another thread is sending, the next turn of the loop sends what that
  // thread has missed.
  if (!sending_mutex_.TryLock()) {
    loop_.Wake();
    return;
  }
  const HeldLock sending(&sending_mutex_);
  SendCommands({.now = clock_->Now()});
}

void ClosureDispatcher::SendCommands(const TickLoop::Turn& turn) {
  std::vector<PlannedCommand> commands;
  {
    absl::MutexLock lock(&mutex_);
    commands = PlanCommands(turn);
  }
  for (PlannedCommand& command : commands) SendCommand(&command);
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

std::vector<PlannedCommand> ClosureDispatcher::PlanCommands(
    const TickLoop::Turn& turn) {
  for (const ReleaseList::Entry& entry : releases_->Take()) {
    WorkerRecord& record = sessions_.records()[entry.worker];
    if (record.session == entry.session) {
      record.released.push_back(entry.closure_id);
    }
  }
  const CommandSources sources = {
      .definitions = &definitions_,
      .queue = &queue_,
      .hands_out_closures = !is_suspended_ && drain_count_ == 0,
      .job_end = job_end_.get()};
  std::vector<PlannedCommand> commands;
  has_free_capacity_ = false;
  has_idle_worker_ = false;
  for (WorkerRecord& record : sessions_.records()) {
    if (record.state != WorkerRecord::State::kOpen) continue;
    std::optional<PlannedCommand> command = PlanCommand(sources, turn, &record);
    if (command.has_value()) {
      if (command->leaves_closures) loop_.Wake();
      if (command->is_last) sessions_.NoteLast(turn.now, &record);
      commands.push_back(*std::move(command));
    }
    NoteCapacity(record);
  }
  return commands;
}

void ClosureDispatcher::SendCommand(PlannedCommand* command) {
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
  // OnEnd() receives the reason why a session has ended.
  if (!sent.ok() && !absl::IsUnavailable(sent)) {
    stream.End(command->session, sent);
  }
}

// ---- Checkpoints and rollbacks.

absl::Status ClosureDispatcher::Drain(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Time started = clock_->Now();
  ++drain_count_;
  queue_.RecallUnstarted();
  loop_.Wake();
  const bool is_in_time = Await(&ClosureDispatcher::IsDrained, deadline);
  if (queue_.in_flight_count() == 0 && !is_suspended_ && !is_aborted_) {
    return absl::OkStatus();
  }
  --drain_count_;
  loop_.Wake();
  if (!is_in_time) {
    return TimedOut("the drain of all running steps", clock_->Now() - started);
  }
  return absl::AbortedError(
      "running steps cannot finish: a parameter server is lost, or the job "
      "has ended");
}

void ClosureDispatcher::Undrain() {
  absl::MutexLock lock(&mutex_);
  --drain_count_;
  loop_.Wake();
}

absl::Status ClosureDispatcher::DrainWorker(
    int worker, absl::AnyInvocable<void()> on_left) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(sessions_.BeginLeaving(worker, std::move(on_left)));
  loop_.Wake();
  return absl::OkStatus();
}

void ClosureDispatcher::Suspend() {
  absl::MutexLock lock(&mutex_);
  is_suspended_ = true;
}

void ClosureDispatcher::Resume() {
  absl::MutexLock lock(&mutex_);
  is_suspended_ = false;
  sessions_.EndPauses();
  loop_.Wake();
}

void ClosureDispatcher::ContinueAt(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  queue_.ContinueAt(id);
  sessions_.RenewAll();
  loop_.Wake();
}

void ClosureDispatcher::SetGeneration(uint64_t generation) {
  absl::MutexLock lock(&mutex_);
  if (generation == generation_) return;
  generation_ = generation;
  sessions_.RenewAll();
  loop_.Wake();
}

ClosureIds ClosureDispatcher::RollBack(const RollbackWork& work) {
  absl::MutexLock lock(&mutex_);
  generation_ = work.generation;
  sessions_.RenewAll();
  if (!work.failure.ok()) queue_.FailAll(work.failure);
  loop_.Wake();
  return queue_.RollBack(work.kept);
}

// ---- The end of the job.

absl::Status ClosureDispatcher::EndJob(const proto::JobEnd& end,
                                       absl::Time deadline) {
  std::string names;
  std::vector<ReconnectingStream*> told;
  {
    absl::MutexLock lock(&mutex_);
    job_end_ = std::make_unique<proto::JobEnd>(end);
    loop_.Wake();
    Await(&ClosureDispatcher::AllPresentWorkersEnded, deadline);
    // A worker that returns after this timeout waits for the next coordinator.
    // If the job failed or was stopped, another coordinator may follow, so the
    // timeout is short.
    const absl::Duration absent_timeout =
        end.exit_code() == 0 ? kAbsentWorkerTimeout : kAbsentWorkerGrace;
    Await(&ClosureDispatcher::AllWorkersEnded,
          std::min(deadline, clock_->Now() + absent_timeout));
    for (const WorkerRecord& record : sessions_.records()) {
      if (record.state == WorkerRecord::State::kEnded) {
        told.push_back(streams_[record.worker].get());
        continue;
      }
      absl::StrAppend(&names, names.empty() ? "" : ", ",
                      channel(record.worker).peer(),
                      record.last_error.empty() ? "" : ": ", record.last_error);
    }
  }
  // A worker closes its session after it has read all messages.
  for (ReconnectingStream* const stream : told) stream->AwaitClosed(deadline);
  if (names.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "these workers were not notified of the end of the job: ", names));
}

void ClosureDispatcher::Withdraw(absl::string_view reason,
                                 absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    job_end_ = std::make_unique<proto::JobEnd>();
    job_end_->set_is_withdrawal(true);
    job_end_->set_reason(std::string(reason));
  }
  for (const auto& stream : streams_) stream->StopDialling();
  loop_.Wake();
  // A worker that was dialled either refuses the session, or accepts it and
  // then receives the end of the job.
  for (const auto& stream : streams_) stream->AwaitClosed(deadline);
}

// ---- Status.

void ClosureDispatcher::AddStatus(StatusReport* report) const {
  absl::MutexLock lock(&mutex_);
  report->queue = QueueStatus{.queued_count = queue_.queued_count(),
                              .in_flight_count = queue_.in_flight_count(),
                              .done_count = queue_.finished_count(),
                              .retried_count = queue_.requeued_count()};
  sessions_.AddStatus(options_.cluster, report);
}

std::string ClosureDispatcher::DescribeLocked() const {
  return absl::StrCat(queue_.queued_count(), " closures are queued",
                      sessions_.Describe());
}

std::string ClosureDispatcher::Describe() const {
  absl::MutexLock lock(&mutex_);
  return DescribeLocked();
}

absl::Status ClosureDispatcher::TimedOut(absl::string_view what,
                                         absl::Duration waited) const {
  return absl::DeadlineExceededError(absl::StrCat(
      what, " has waited ",
      absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1))), ": ",
      DescribeLocked()));
}

}  // namespace muster
