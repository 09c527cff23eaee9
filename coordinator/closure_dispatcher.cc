#include "coordinator/closure_dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/log.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/identity.h"
#include "coordinator/closure_arguments.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

// Closures taken for one message.
constexpr int kClosuresPerMessageMax = 2048;

// A worker with so much to do can wait for a fuller message.
constexpr absl::Duration kBacklogEnough = absl::Milliseconds(1);
constexpr int kClosuresWorthAMessage = 32;

// For the transport to tell that cancelled streams are done.
constexpr absl::Duration kCancelTimeout = absl::Seconds(30);

std::vector<TaskId> WorkerTasks(const ClusterSpec& cluster) {
  return cluster.Tasks(TaskType::kWorker);
}

ClosureQueue::Options WithWorkerCount(ClosureQueue::Options options,
                                      size_t worker_count) {
  options.worker_count = static_cast<int>(worker_count);
  return options;
}

}  // namespace

// Hears one session. The dispatcher outlives it: it counts its observers.
class ClosureDispatcher::Observer final : public StreamObserver {
 public:
  Observer(ClosureDispatcher* dispatcher, int worker, uint64_t session)
      : dispatcher_(dispatcher), worker_(worker), session_(session) {}

  void OnMessage(ReceivedMessage message) override {
    dispatcher_->OnReport(worker_, session_, std::move(message));
  }
  void OnDone(const absl::Status& status) override {
    dispatcher_->OnStreamDone(worker_, session_, status);
  }

 private:
  ClosureDispatcher* const dispatcher_;
  const int worker_;
  const uint64_t session_;
};

// Something to do without the lock.
struct ClosureDispatcher::Action {
  enum class Kind { kOpen, kSend, kCancel } kind = Kind::kOpen;
  int worker = 0;
  uint64_t session = 0;
  uint64_t generation = 0;
  std::shared_ptr<Stream> stream;
  proto::WorkerCommand command;
  std::vector<ClosureQueue::Taken> closures;
};

ClosureDispatcher::ClosureDispatcher(
    const Options& options, std::vector<std::unique_ptr<Channel>> channels,
    FailureJudge judge, MissingTasks* missing, Clock* clock)
    : options_(options),
      judge_(std::move(judge)),
      clock_(clock),
      releases_(std::make_shared<ReleaseList>()),
      missing_(missing),
      queue_(WithWorkerCount(options.queue, channels.size())),
      lanes_(channels.size()),
      next_tick_(clock->Now() + options.heartbeat_interval) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].worker = static_cast<int>(i);
    lanes_[i].channel = std::move(channels[i]);
  }
  thread_ = std::thread([this] { RunLoop(); });
}

ClosureDispatcher::~ClosureDispatcher() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (!is_aborted_) {
      queue_.Abort(absl::CancelledError("the coordinator is shutting down"));
    }
  }
  thread_.join();
  absl::MutexLock lock(&mutex_);
  for (const WorkerLane& lane : lanes_) {
    if (lane.stream != nullptr) streams.push_back(lane.stream);
  }
  for (const WorkerLane& lane : lanes_) {
    if (lane.replaced_stream != nullptr) {
      streams.push_back(lane.replaced_stream);
    }
  }
  for (auto& stream : std::exchange(doomed_, {})) streams.push_back(stream);
  mutex_.Unlock();
  for (const auto& stream : streams) stream->Cancel();
  mutex_.Lock();
  MUSTER_CHECK(clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ClosureDispatcher::NoObserversLeft),
      clock_->Now() + kCancelTimeout));
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
  MUSTER_CHECK(iterator.contexts.size() == lanes_.size());
  absl::MutexLock lock(&mutex_);
  iterators_.push_back(std::move(iterator));
  return static_cast<uint32_t>(iterators_.size() - 1);
}

absl::StatusOr<RemoteValue> ClosureDispatcher::Schedule(ClosureWork work,
                                                        absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!MaySchedule()) {
    const absl::Time started = clock_->Now();
    if (!clock_->AwaitWithDeadline(
            &mutex_, absl::Condition(this, &ClosureDispatcher::MaySchedule),
            deadline)) {
      return TimedOut("Schedule", clock_->Now() - started);
    }
  }
  if (queue_.failing()) return queue_.TakeFailure();
  RemoteValue value(queue_.Add(std::move(work)));
  // Waking costs more than queueing, so it is left out where no worker could
  // take the closure anyway: then a report will wake the dispatcher.
  if (hungry_ || queue_.queued_count() % kClosuresWorthAMessage == 0) {
    wake_ = true;
  }
  return value;
}

absl::Status ClosureDispatcher::Join(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Time started = clock_->Now();
  if (!clock_->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &ClosureDispatcher::IsSettled),
          deadline)) {
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
  wake_ = true;
}

void ClosureDispatcher::CancelAll() {
  absl::MutexLock lock(&mutex_);
  queue_.CancelAll();
  wake_ = true;
}

void ClosureDispatcher::Abort(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (is_aborted_) return;
  is_aborted_ = true;
  queue_.Abort(why);
  wake_ = true;
}

absl::Status ClosureDispatcher::EndJob(const proto::JobEnd& end,
                                       absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  job_end_ = end;
  wake_ = true;
  const bool all_told = clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ClosureDispatcher::AllLanesEnded),
      deadline);
  // What was sent is on its way when the worker has closed its end.
  clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ClosureDispatcher::NoObserversLeft),
      deadline);
  if (all_told) return absl::OkStatus();
  std::string names;
  for (const WorkerLane& lane : lanes_) {
    if (lane.state == WorkerLane::State::kEnded) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", lane.channel->peer(),
                    lane.last_error.empty() ? "" : ": ", lane.last_error);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("these were not told that the job is over: ", names));
}

void ClosureDispatcher::Withdraw(absl::string_view reason,
                                 absl::Time deadline) {
  proto::JobEnd end;
  end.set_is_withdrawal(true);
  end.set_reason(std::string(reason));
  absl::MutexLock lock(&mutex_);
  job_end_ = std::move(end);
  wake_ = true;
  clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ClosureDispatcher::AllOpenLanesEnded),
      deadline);
  // As above.
  clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ClosureDispatcher::NoStreamsOfEndedLanes),
      deadline);
}

ClosureDispatcher::Counters ClosureDispatcher::counters() const {
  absl::MutexLock lock(&mutex_);
  return {.finished_count = queue_.finished_count(),
          .requeued_count = queue_.requeued_count(),
          .lost_count = lost_count_,
          .recovered_count = recovered_count_,
          .busy = busy_};
}

uint64_t ClosureDispatcher::worker_incarnation(int worker) const {
  absl::MutexLock lock(&mutex_);
  return lanes_[worker].incarnation;
}

void ClosureDispatcher::OnReport(int worker, uint64_t session,
                                 ReceivedMessage message) {
  const auto report = message.ParseBody<proto::WorkerReport>();
  const auto tensors = message.ToTensors();
  absl::MutexLock lock(&mutex_);
  WorkerLane& lane = lanes_[worker];
  if (lane.session != session || stopping_) return;
  lane.silent_ticks = 0;
  absl::Status status = report.status();
  if (status.ok()) status = tensors.status();
  if (status.ok() && report->has_acceptance()) {
    Accept(&lane, report->acceptance());
  }
  if (status.ok() && lane.state == WorkerLane::State::kOpen) {
    absl::Status trouble;
    status = TakeReport(*report, *tensors, lane, judge_, releases_, &queue_,
                        &trouble);
    if (!trouble.ok()) {
      NoteTrouble(&lane, trouble);
    } else if (report->finished_size() + report->results_size() > 0) {
      lane.trouble.clear();
      lane.trouble_count = 0;
    }
    busy_ += absl::Nanoseconds(report->busy_ns());
  }
  if (!status.ok()) Lose(&lane, status);
  wake_ = true;
}

void ClosureDispatcher::OnStreamDone(int worker, uint64_t session,
                                     const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  --observer_count_;
  WorkerLane& lane = lanes_[worker];
  if (lane.session != session || stopping_) return;
  if (lane.state == WorkerLane::State::kEnded) {
    lane.stream = nullptr;
    return;
  }
  Lose(&lane,
       status.ok() ? absl::UnavailableError("it closed the session") : status);
}

void ClosureDispatcher::Accept(WorkerLane* lane,
                               const proto::SessionAcceptance& acceptance) {
  if (lane->state != WorkerLane::State::kOpening) return;
  lane->accepted = true;
  lane->incarnation = acceptance.incarnation();
  lane->fingerprints_there.insert(acceptance.fingerprints().begin(),
                                  acceptance.fingerprints().end());
  UseIfReady(lane);
}

void ClosureDispatcher::UseIfReady(WorkerLane* lane) {
  if (lane->state != WorkerLane::State::kOpening || !lane->accepted ||
      lane->stream == nullptr) {
    return;
  }
  lane->state = WorkerLane::State::kOpen;
  lane->failed_open_count = 0;
  lane->silent_ticks = 0;
  lane->last_error.clear();
  if (lane->replaced_stream != nullptr) {
    doomed_.push_back(std::move(lane->replaced_stream));
  }
  queue_.WorkerReady(lane->worker);
  missing_->MarkPresent(WorkerTasks(options_.cluster)[lane->worker]);
  const bool is_renewed = std::exchange(lane->is_renewed, false);
  if (++lane->sessions_open_count > 1 && !is_renewed) {
    ++recovered_count_;
    LOG(INFO) << lane->channel->peer() << " is back, incarnation "
              << IncarnationString(lane->incarnation);
  }
  wake_ = true;
}

void ClosureDispatcher::RunLoop() {
  std::vector<Action> actions;
  while (true) {
    actions.clear();
    {
      absl::MutexLock lock(&mutex_);
      clock_->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &ClosureDispatcher::MayWake),
          NextWakeUp());
      if (stopping_) return;
      wake_ = false;
      const absl::Time now = clock_->Now();
      if (now >= next_tick_) Tick(now);
      Plan(now, &actions);
    }
    for (Action& action : actions) {
      switch (action.kind) {
        case Action::Kind::kOpen:
          Open(action);
          break;
        case Action::Kind::kSend:
          SendCommand(&action);
          break;
        case Action::Kind::kCancel:
          action.stream->Cancel();
      }
    }
  }
}

void ClosureDispatcher::Tick(absl::Time now) {
  next_tick_ = now + options_.heartbeat_interval;
  heartbeat_due_ = true;
  // Silence is counted in ticks, not in time: a coordinator that was stopped
  // and goes on has missed no tick, and takes nobody for lost.
  const int64_t silent_ticks_max = std::max<int64_t>(
      2, options_.heartbeat_timeout / options_.heartbeat_interval);
  for (WorkerLane& lane : lanes_) {
    if (lane.state == WorkerLane::State::kOpen &&
        ++lane.silent_ticks > silent_ticks_max) {
      Lose(&lane, absl::UnavailableError(absl::StrCat(
                      "it has been silent for ",
                      absl::FormatDuration(options_.heartbeat_timeout))));
    } else if (lane.state == WorkerLane::State::kOpening &&
               now >= lane.opening_deadline) {
      Lose(&lane, absl::DeadlineExceededError(absl::StrCat(
                      "no answer for ",
                      absl::FormatDuration(options_.handshake_timeout))));
    }
  }
}

void ClosureDispatcher::Plan(absl::Time now, std::vector<Action>* actions) {
  for (const ReleaseList::Entry& entry : releases_->Take()) {
    WorkerLane& lane = lanes_[entry.worker];
    if (lane.session == entry.session) {
      lane.released.push_back(entry.closure_id);
    }
  }
  for (std::shared_ptr<Stream>& stream : std::exchange(doomed_, {})) {
    Action& action = actions->emplace_back();
    action.kind = Action::Kind::kCancel;
    action.stream = std::move(stream);
  }
  hungry_ = false;
  for (WorkerLane& lane : lanes_) {
    if (lane.state == WorkerLane::State::kClosed &&
        now >= lane.next_open_time) {
      lane.state = WorkerLane::State::kOpening;
      lane.opening_deadline = now + options_.handshake_timeout;
      ++observer_count_;
      Action& action = actions->emplace_back();
      action.kind = Action::Kind::kOpen;
      action.worker = lane.worker;
      action.session = lane.session;
      action.generation = generation_;
    } else if (lane.state == WorkerLane::State::kOpen) {
      Action action;
      if (PlanCommand(now, &lane, &action))
        actions->push_back(std::move(action));
      hungry_ = hungry_ || queue_.in_flight_count(lane.worker) <
                               queue_.window_size(lane.worker);
    }
  }
  heartbeat_due_ = false;
}

bool ClosureDispatcher::PlanCommand(absl::Time now, WorkerLane* lane,
                                    Action* action) {
  const int worker = lane->worker;
  queue_.SetPaused(worker, now < lane->paused_until);
  // The mark rides along; alone it goes with the heartbeat.
  bool has_content = heartbeat_due_;
  if (!is_suspended_ && drain_count_ == 0 && queue_.HasClosuresFor(worker) &&
      (queue_.queued_count() >= kClosuresWorthAMessage ||
       queue_.backlog(worker) < kBacklogEnough)) {
    AddDefinitions(functions_, iterators_, lane, &action->command);
    queue_.Take(worker, kClosuresPerMessageMax, &action->closures);
    has_content = true;
    // There may be more for it than its share, or for another.
    if (queue_.queued_count() > 0) wake_ = true;
  }
  if (queue_.HasRecallsFor(worker)) {
    for (const uint64_t id : queue_.TakeRecalls(worker)) {
      action->command.add_recalled(id);
    }
    has_content = true;
  }
  if (!lane->released.empty()) {
    for (const uint64_t id : lane->released) action->command.add_released(id);
    lane->released.clear();
    has_content = true;
  }
  if (job_end_.has_value()) {
    *action->command.mutable_job_end() = *job_end_;
    lane->state = WorkerLane::State::kEnded;
    ++ended_lane_count_;
    has_content = true;
  }
  if (!has_content) return false;
  if (lane->mark_told != queue_.low_water_mark()) {
    lane->mark_told = queue_.low_water_mark();
    action->command.set_low_water_mark(lane->mark_told);
  }
  action->kind = Action::Kind::kSend;
  action->worker = worker;
  action->session = lane->session;
  action->stream = lane->stream;
  return true;
}

absl::Time ClosureDispatcher::NextWakeUp() const {
  absl::Time wake_up = next_tick_;
  const absl::Time now = clock_->Now();
  for (const WorkerLane& lane : lanes_) {
    if (lane.paused_until > now) {
      wake_up = std::min(wake_up, lane.paused_until);
    }
    if (lane.state == WorkerLane::State::kClosed) {
      wake_up = std::min(wake_up, lane.next_open_time);
    }
  }
  return wake_up;
}

void ClosureDispatcher::Open(const Action& action) {
  WorkerLane& lane = lanes_[action.worker];
  const std::shared_ptr<Stream> stream = lane.channel->OpenStream(
      kWorkerSessionMethod,
      std::make_shared<Observer>(this, action.worker, action.session));
  proto::WorkerCommand command;
  proto::SessionOpening* const opening = command.mutable_opening();
  *opening->mutable_cluster() = EncodeCluster(options_.cluster);
  opening->set_worker_index(WorkerTasks(options_.cluster)[action.worker].index);
  opening->set_coordinator(options_.coordinator);
  opening->set_job_seed(options_.job_seed);
  opening->set_generation(action.generation);
  opening->set_runner_count(options_.queue.runner_count);
  opening->set_heartbeat_interval_ms(
      absl::ToInt64Milliseconds(options_.heartbeat_interval));
  opening->set_heartbeat_timeout_ms(
      absl::ToInt64Milliseconds(options_.heartbeat_timeout));
  // A failure is told to the observer.
  stream->Send(Message{command.SerializeAsString(), {}}).IgnoreError();

  absl::MutexLock lock(&mutex_);
  if (lane.session != action.session ||
      lane.state != WorkerLane::State::kOpening) {
    // A worker whose only session ends takes its coordinator for lost.
    const bool is_followed = lane.state == WorkerLane::State::kClosed ||
                             lane.state == WorkerLane::State::kOpening;
    if (is_followed && lane.replaced_stream == nullptr) {
      lane.replaced_stream = stream;
    } else {
      doomed_.push_back(stream);
    }
    wake_ = true;
    return;
  }
  lane.stream = stream;
  UseIfReady(&lane);
}

void ClosureDispatcher::SendCommand(Action* action) {
  Message message;
  AddClosures(action->closures, action->worker, &action->command,
              &message.tensors);
  message.body = action->command.SerializeAsString();
  absl::Status status = FaultPoint("coordinator.before_send");
  if (status.ok()) status = action->stream->Send(message);
  if (status.ok()) return;
  absl::MutexLock lock(&mutex_);
  WorkerLane& lane = lanes_[action->worker];
  if (lane.session == action->session &&
      lane.state == WorkerLane::State::kOpen) {
    Lose(&lane, status);
  }
}

std::string ClosureDispatcher::DescribeLocked() const {
  std::string text = queue_.Describe();
  for (const WorkerLane& lane : lanes_) {
    const std::string& why =
        lane.last_error.empty() ? lane.trouble : lane.last_error;
    if (why.empty()) continue;
    absl::StrAppend(&text, "; ", lane.channel->peer(), ": ", why);
  }
  return text;
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
