#include "ps/parameter_service.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/core/system/trace.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/cluster_differences.h"
#include "common/net/cluster/task_id.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/process/version.h"
#include "common/net/status/trace_service.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "proto/task.pb.h"
#include "ps/client/methods.h"
#include "ps/shared_tensors.h"

namespace muster {
namespace {

constexpr MetricInfo kExchanges = {"muster_exchanges_total",
                                   "Exchanges that this server received."};
constexpr MetricInfo kUpdates = {
    "muster_updates_total", "Exchanges that changed variables of this server."};
constexpr MetricInfo kRepeats = {
    "muster_duplicate_updates_dropped_total",
    "Updates that had been applied before and were not applied again."};
constexpr MetricInfo kBytesReceived = {
    "muster_tensor_bytes_received_total",
    "Bytes of tensors in exchanges that this server received, over any "
    "transport."};
constexpr MetricInfo kBytesSent = {
    "muster_tensor_bytes_sent_total",
    "Bytes of tensors in this server's answers, over any transport."};
constexpr MetricInfo kVariableBytes = {
    "muster_variable_bytes", "Variables of this server, without slots."};
constexpr MetricInfo kVariables = {"muster_variables",
                                   "Shards of variables on this server."};
constexpr MetricInfo kExchangeSeconds = {
    "muster_exchange_seconds",
    "Time in which this server processes an exchange."};

// The coordinator sends a message at this interval.
constexpr absl::Duration kSilenceTick = absl::Milliseconds(500);
// A connected coordinator may be silent for this time, even if the grace period
// is shorter.
constexpr absl::Duration kSilenceMin = absl::Seconds(2);

void SetActivity(const ParameterShard& shard, proto::ServerActivity* activity) {
  const ParameterShard::Activity of_shard = shard.activity();
  activity->set_update_count(of_shard.update_count);
  activity->set_bytes_received(of_shard.bytes_received);
  activity->set_bytes_sent(of_shard.bytes_sent);
  activity->set_variable_bytes(of_shard.variable_bytes);
}

}  // namespace

// One open Watch stream. If either process ends, the stream breaks in the other
// one.
class ParameterService::Watcher final : public StreamObserver {
 public:
  Watcher(ParameterService* service, std::shared_ptr<Stream> stream)
      : service_(service), stream_(std::move(stream)) {}

  void OnMessage(ReceivedMessage message) override {
    const auto request = message.ParseBody<proto::WatchRequest>();
    if (!request.ok()) {
      stream_->Finish(request.status());
      return;
    }
    if (const absl::Status agreed = service_->CheckCluster(*request);
        !agreed.ok()) {
      LOG(WARNING) << "rejected a coordinator: " << agreed.message();
      stream_->Finish(agreed);
      service_->OnClusterMismatch(agreed);
      return;
    }
    is_coordinator_ = is_coordinator_ || request->is_coordinator();
    if (is_coordinator_ && request->has_copies()) service_->UseCopies();
    if (is_coordinator_) {
      service_->OnCoordinatorMessage(stream_, *request);
      const absl::Status noted = service_->NoteJob(message.identity());
      if (!noted.ok()) LOG(ERROR) << noted.message();
    }
    if (is_coordinator_ && request->may_end()) service_->LetGo();
    proto::WatchEvent event;
    event.set_incarnation(service_->admission_check_.self().incarnation);
    event.set_is_ending(service_->is_ending());
    SetActivity(service_->shard_, event.mutable_activity());
    service_->SetLogFields(&event);
    const absl::Status sent =
        stream_->Send(Message{event.SerializeAsString(), {}});
    if (!sent.ok()) stream_->Finish(sent);
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {
    if (is_coordinator_) service_->OnCoordinatorDisconnected(stream_);
  }

 private:
  ParameterService* const service_;
  const std::shared_ptr<Stream> stream_;
  bool is_coordinator_ = false;
};

ParameterService::ParameterService(
    TaskIdentity self, const ParameterShard::Options& options,
    ClusterSpec cluster, const SegmentIntake::Options& segments,
    const CheckpointHandler::Options& checkpoints,
    const std::optional<LogKeeper::Options>& log, Network* network)
    : cluster_(std::move(cluster)),
      start_(Clock::Real()->Now()),
      admission_check_(std::move(self)),
      shard_(options),
      log_(log.has_value() ? std::make_unique<LogKeeper>(*log, &shard_)
                           : nullptr),
      segments_(segments),
      create_pool_("ps_create", 1),
      checkpoints_(
          checkpoints, &admission_check_,
          [this](const proto::RequestIdentity& identity) {
            return AdoptJob(identity);
          },
          &shard_),
      copies_(CopyParts(network)),
      metrics_([this](MetricSink* sink) { AddMetrics(sink); }),
      status_([this](StatusReport* report) { AddStatus(report); }) {
  if (log_ != nullptr && log_->restored().has_value()) {
    const proto::ServerLogJob& job = log_->restored()->job;
    proto::RequestIdentity identity;
    identity.set_job_id(job.job_id());
    identity.set_coordinator_epoch(job.coordinator_epoch());
    if (!job.job_id().empty()) {
      // This process had no other job before.
      MUSTER_CHECK(admission_check_.AdoptJob(identity).ok());
      admission_check_.SetHasCoordinator(false);
    }
    coordinator_return_timeout_ms_ = job.coordinator_return_timeout_ms();
  }
  const auto add = [this](absl::string_view method,
                          void (ParameterService::*handle)(ReceivedMessage,
                                                           Responder)) {
    service_.AddUnary(
        method, [this, handle](ReceivedMessage message, Responder responder) {
          (this->*handle)(std::move(message), std::move(responder));
        });
  };
  add(kDescribeMethod, &ParameterService::HandleDescribe);
  add(kCreateMethod, &ParameterService::HandleCreate);
  add(kSetOptimizerMethod, &ParameterService::HandleSetOptimizer);
  add(kAssignAveragesMethod, &ParameterService::HandleAssignAverages);
  add(kExchangeMethod, &ParameterService::HandleExchange);
  add(kEndTaskMethod, &ParameterService::HandleEndTask);
  AddTraceMethod(&service_);
  segments_.AddTo(&service_);
  checkpoints_.AddTo(&service_);
  copies_.AddTo(&service_);
  service_.AddStream(kWatchMethod, [this](std::shared_ptr<Stream> stream) {
    return std::make_shared<Watcher>(this, std::move(stream));
  });
}

ParameterService::~ParameterService() = default;

void ParameterService::AddMetrics(MetricSink* sink) const {
  const ParameterShard::Activity activity = shard_.activity();
  sink->AddCounter(kExchanges, static_cast<double>(activity.exchange_count));
  sink->AddCounter(kUpdates, static_cast<double>(activity.update_count));
  sink->AddCounter(kRepeats, static_cast<double>(activity.repeat_count));
  sink->AddCounter(kBytesReceived,
                   static_cast<double>(activity.bytes_received));
  sink->AddCounter(kBytesSent, static_cast<double>(activity.bytes_sent));
  sink->AddGauge(kVariableBytes, static_cast<double>(activity.variable_bytes));
  sink->AddGauge(kVariables, static_cast<double>(activity.variable_count));
}

void ParameterService::AddStatus(StatusReport* report) const {
  const ParameterShard::Activity activity = shard_.activity();
  TaskStatus self = {.task = admission_check_.self().ToString(),
                     .state = TaskStatus::State::kConnected,
                     .in_state = Clock::Real()->Now() - start_,
                     .incarnation = admission_check_.self().incarnation,
                     .update_count = activity.update_count,
                     .bytes_received = activity.bytes_received,
                     .bytes_sent = activity.bytes_sent,
                     .variable_bytes = activity.variable_bytes};
  absl::MutexLock lock(&mutex_);
  report->readiness.push_back(
      !coordinators_.empty()
          ? absl::OkStatus()
          : absl::UnavailableError("no coordinator is connected"));
  report->tasks.push_back(std::move(self));
}

void ParameterService::HandleDescribe(ReceivedMessage, Responder responder) {
  proto::DescribeResponse response = shard_.Describe();
  response.set_job_id(admission_check_.job_id());
  response.set_state_id(state_id());
  response.set_is_copy(copies_.is_holder());
  responder.Respond(Message{response.SerializeAsString(), {}});
}

void ParameterService::HandleCreate(ReceivedMessage message,
                                    Responder responder) {
  create_pool_.Schedule([this, message = std::move(message),
                         responder = std::move(responder)]() mutable {
    responder.Respond(Create(message));
  });
}

uint64_t ParameterService::state_id() const {
  if (const auto taken = copies_.state_id(); taken.has_value()) return *taken;
  const uint64_t state_id = log_ == nullptr ? 0 : log_->state_id();
  return state_id == 0 ? self().incarnation : state_id;
}

void ParameterService::SetLogFields(proto::WatchEvent* event) const {
  event->set_state_id(state_id());
  copies_.SetWatchFields(event);
  if (log_ == nullptr || has_copies()) return;
  event->set_log_number(log_->log_number());
  if (log_->restored().has_value()) {
    *event->mutable_restored() = log_->restored()->state;
  }
  event->set_not_restored(log_->why_not_restored());
}

absl::Status ParameterService::AdoptJob(
    const proto::RequestIdentity& identity) {
  RETURN_IF_ERROR(admission_check_.AdoptJob(identity));
  return NoteJob(identity);
}

absl::Status ParameterService::NoteJob(const proto::RequestIdentity& identity) {
  if (log_ == nullptr || identity.job_id().empty() ||
      identity.job_id() != admission_check_.job_id()) {
    return absl::OkStatus();
  }
  return log_->NoteJob(JobOf(identity));
}

proto::ServerLogJob ParameterService::JobOf(
    const proto::RequestIdentity& identity) const {
  proto::ServerLogJob job;
  job.set_job_id(identity.job_id());
  job.set_coordinator_epoch(identity.coordinator_epoch());
  absl::MutexLock lock(&mutex_);
  job.set_coordinator_return_timeout_ms(coordinator_return_timeout_ms_);
  return job;
}

// ---- Copies.

CopyService::Parts ParameterService::CopyParts(Network* network) {
  return {.network = network,
          .admission_check = &admission_check_,
          .shard = &shard_,
          .state_id = [this] { return state_id(); },
          .job =
              [this](const proto::RequestIdentity& identity) {
                return JobOf(identity);
              },
          .on_taken_over = [this] { checkpoints_.TakeRestoredSnapshots(); },
          .on_replaced = [this](const absl::Status& why) { OnReplaced(why); }};
}

bool ParameterService::has_copies() const {
  absl::MutexLock lock(&mutex_);
  return has_copies_;
}

void ParameterService::UseCopies() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(has_copies_, true)) return;
  }
  copies_.Use();
  if (log_ == nullptr) return;
  LOG(INFO) << "keeps no log, because another ps task has a copy (ps_copies)";
  // A process that was restarted is not the one with the current state.
  if (log_->restored().has_value()) Reset();
  EndLog();
}

void ParameterService::OnReplaced(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (is_ended_) return;
  is_ended_ = true;
  // A signal has asked for the end, and another task serves.
  if (is_ending_) return;
  outcome_ = {.end = End::kReplaced,
              .has_job_ended = outcome_.has_job_ended,
              .why = why};
}

absl::StatusOr<Message> ParameterService::Create(
    const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const proto::CreateRequest request,
                   message.ParseBody<proto::CreateRequest>());
  RETURN_IF_ERROR(AdoptJob(message.identity()));
  proto::CreateResponse response;
  ASSIGN_OR_RETURN(const uint32_t handle, shard_.Create(request));
  response.set_handle(handle);
  return Message{response.SerializeAsString(), {}};
}

void ParameterService::HandleSetOptimizer(ReceivedMessage message,
                                          Responder responder) {
  responder.Respond(SetOptimizer(message));
}

absl::StatusOr<Message> ParameterService::SetOptimizer(
    const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const proto::SetOptimizerRequest request,
                   message.ParseBody<proto::SetOptimizerRequest>());
  RETURN_IF_ERROR(AdoptJob(message.identity()));
  RETURN_IF_ERROR(shard_.SetOptimizer(request));
  return Message{proto::SetOptimizerResponse().SerializeAsString(), {}};
}

void ParameterService::HandleAssignAverages(ReceivedMessage,
                                            Responder responder) {
  const absl::Status assigned = shard_.AssignAverages();
  if (!assigned.ok()) {
    responder.Respond(assigned);
    return;
  }
  responder.Respond(
      Message{proto::AssignAveragesResponse().SerializeAsString(), {}});
}

void ParameterService::HandleExchange(ReceivedMessage message,
                                      Responder responder) {
  static DurationMetric* const seconds = GetDurationMetric(kExchangeSeconds);
  const TraceSpan span("rpc", "exchange");
  const absl::Time start = Clock::Real()->Now();
  absl::StatusOr<Message> answer = Exchange(message);
  seconds->Observe(Clock::Real()->Now() - start);
  responder.Respond(std::move(answer));
}

absl::StatusOr<Message> ParameterService::Exchange(
    const ReceivedMessage& message) {
  if (message.identity().target_incarnation() == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "an exchange must set the callee's incarnation, because handles are "
        "valid for one process only (this is incarnation ",
        IncarnationString(admission_check_.self().incarnation), ")"));
  }
  ASSIGN_OR_RETURN(const proto::ExchangeRequest request,
                   message.ParseBody<proto::ExchangeRequest>());
  proto::ExchangeResponse response;
  ClientMemory memory;
  if (request.segment_id() != 0) {
    memory = segments_.Find(request.segment_id(), message.identity());
    if (memory.data == nullptr) {
      response.set_segment_is_unknown(true);
      return Message{response.SerializeAsString(), {}};
    }
  }
  ASSIGN_OR_RETURN(const std::vector<ReceivedTensor> tensors,
                   CollectTensors(request, message.tensors(), memory));
  ASSIGN_OR_RETURN(const std::vector<AnswerPlace> places,
                   CollectPlaces(request, memory));
  std::vector<Tensor> answers;
  RETURN_IF_ERROR(
      shard_.Exchange(request, tensors, &response, &answers, places));
  return Message{response.SerializeAsString(), std::move(answers)};
}

void ParameterService::HandleEndTask(ReceivedMessage message,
                                     Responder responder) {
  const auto request = message.ParseBody<proto::EndTaskRequest>();
  if (!request.ok()) {
    responder.Respond(request.status());
    return;
  }
  responder.Respond(Message{proto::EndTaskResponse().SerializeAsString(), {}});
  absl::MutexLock lock(&mutex_);
  outcome_.has_job_ended = true;
  if (is_ended_) return;
  is_ended_ = true;
  // If this server was signalled as well, its outcome stays kStopped.
  if (is_ending_) return;
  outcome_ = {.end = End::kJobEnd,
              .exit_code = request->exit_code(),
              .reason = request->reason(),
              .has_job_ended = true};
}

void ParameterService::OnClusterMismatch(const absl::Status& disagreement) {
  if (!admission_check_.job_id().empty()) return;
  absl::MutexLock lock(&mutex_);
  if (is_ended_ || !coordinators_.empty()) return;
  is_ended_ = true;
  outcome_ = {.end = End::kDisagreement, .why = disagreement};
}

void ParameterService::Stop() {
  absl::MutexLock lock(&mutex_);
  if (is_ended_) return;
  is_ended_ = true;
  outcome_ = {.end = End::kStopped, .has_job_ended = outcome_.has_job_ended};
}

void ParameterService::BeginEnd() {
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
    if (!coordinators_.empty()) {
      LOG(INFO) << "received a signal to end; waiting for the coordinator to "
                << (has_copies_ ? "let another task serve the variables"
                                : "save this server's variables");
      return;
    }
  }
  Stop();
}

bool ParameterService::is_ending() {
  absl::MutexLock lock(&mutex_);
  return is_ending_;
}

void ParameterService::LetGo() {
  if (is_ending()) Stop();
}

absl::Status ParameterService::CheckCluster(
    const proto::WatchRequest& request) const {
  if (!request.has_cluster()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckVersionsAgree("the coordinator", request.version()));
  if (cluster_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ClusterSpec there, DecodeCluster(request.cluster()));
  return CheckClustersAgree(TaskId{TaskType::kChief, 0}, there, cluster_);
}

void ParameterService::OnCoordinatorMessage(
    const std::shared_ptr<Stream>& stream, const proto::WatchRequest& request) {
  absl::MutexLock lock(&mutex_);
  silent_ticks_ = 0;
  if (request.has_cluster()) {
    coordinator_return_timeout_ms_ = request.coordinator_return_timeout_ms();
  }
  if (!coordinators_.insert(stream).second) return;
  had_coordinator_ = true;
  admission_check_.SetHasCoordinator(true);
}

void ParameterService::OnCoordinatorDisconnected(
    const std::shared_ptr<Stream>& stream) {
  absl::MutexLock lock(&mutex_);
  coordinators_.erase(stream);
  admission_check_.SetHasCoordinator(!coordinators_.empty());
}

ParameterService::Outcome ParameterService::AwaitEnd(
    const CoordinatorWait::Options& coordinator,
    CoordinatorGrace coordinator_grace) {
  std::set<std::shared_ptr<Stream>> lost;
  Outcome outcome;
  AwaitOwnCoordinator(coordinator_grace);
  {
    absl::MutexLock lock(&mutex_);
    if (const auto none = AwaitCoordinator(coordinator)) return *none;
    outcome = AwaitLoss(coordinator.coordinator, coordinator_grace);
    if (outcome.end == End::kCoordinatorLost) lost.swap(coordinators_);
  }
  for (const std::shared_ptr<Stream>& stream : lost) stream->Cancel();
  return outcome;
}

void ParameterService::AwaitOwnCoordinator(CoordinatorGrace coordinator_grace) {
  if (log_ == nullptr || !log_->restored().has_value()) return;
  Clock* const clock = Clock::Real();
  const auto ended_or_connected = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_ended_ || had_coordinator_;
  };
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration grace =
        coordinator_grace.For(coordinator_return_timeout_ms_);
    if (clock->AwaitWithDeadline(&mutex_, absl::Condition(&ended_or_connected),
                                 clock->Now() + grace)) {
      return;
    }
    LOG(WARNING) << "no coordinator of the job whose state was restored has "
                    "connected for "
                 << absl::FormatDuration(grace)
                 << "; dropped it and waiting for another coordinator";
  }
  Reset();
}

std::optional<ParameterService::Outcome> ParameterService::AwaitCoordinator(
    const CoordinatorWait::Options& coordinator) {
  Clock* const clock = Clock::Real();
  CoordinatorWait wait(coordinator, clock->Now());
  const auto ended_or_connected = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_ended_ || had_coordinator_;
  };
  while (!ended_or_connected()) {
    const absl::StatusOr<std::string> line =
        wait.Look(true, lost_count_, clock->Now());
    if (!line.ok()) {
      return Outcome{.end = End::kNoCoordinator, .why = line.status()};
    }
    if (!line->empty()) LOG(INFO) << *line;
    clock->AwaitWithDeadline(&mutex_, absl::Condition(&ended_or_connected),
                             wait.next_look());
  }
  return std::nullopt;
}

// The loop runs until the server is stopped or its coordinator is lost; the
// number of silent ticks bounds the wait for a lost coordinator.
ParameterService::Outcome ParameterService::AwaitLoss(
    const std::string& coordinator, CoordinatorGrace coordinator_grace) {
  Clock* const clock = Clock::Real();
  bool was_connected = true;
  const auto has_changed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_ended_ || was_connected == coordinators_.empty();
  };
  silent_ticks_ = 0;
  while (true) {
    const bool changed = clock->AwaitWithDeadline(
        &mutex_, absl::Condition(&has_changed), clock->Now() + kSilenceTick);
    if (is_ended_) return outcome_;
    const bool is_there = !coordinators_.empty();
    if (!is_there && is_ending_) return outcome_;
    if (!changed) ++silent_ticks_;
    const absl::Duration silence = silent_ticks_ * kSilenceTick;
    const absl::Duration grace =
        coordinator_grace.For(coordinator_return_timeout_ms_);
    if (changed && is_there) LOG(INFO) << coordinator << " has reconnected";
    if (changed && !is_there) {
      LOG(WARNING) << coordinator << " disconnected; waiting "
                   << absl::FormatDuration(
                          std::max(grace - silence, absl::ZeroDuration()))
                   << " for it to reconnect";
    }
    was_connected = is_there;
    if (silence < (is_there ? std::max(grace, kSilenceMin) : grace)) {
      continue;
    }
    ++lost_count_;
    return {.end = End::kCoordinatorLost,
            .why = absl::UnavailableError(absl::StrCat(
                "the coordinator is lost: ", coordinator,
                " has sent nothing for ", absl::FormatDuration(silence)))};
  }
}

void ParameterService::Reset() {
  if (log_ == nullptr) {
    shard_.Clear();
  } else {
    log_->Reset();
  }
  copies_.Reset();
  admission_check_.ReleaseJob();
  absl::MutexLock lock(&mutex_);
  had_coordinator_ = !coordinators_.empty();
  if (is_ended_ && outcome_.end == End::kJobEnd) {
    is_ended_ = is_ending_;
    outcome_ = {.end = End::kStopped};
  }
}

}  // namespace muster
