#include "worker/worker_service.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/cluster_differences.h"
#include "common/net/cluster/task_id.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/version.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/hand_over.h"
#include "common/net/rpc/message.h"
#include "common/net/status/trace_service.h"
#include "proto/rpc.pb.h"
#include "proto/task.pb.h"
#include "proto/worker.pb.h"
#include "worker/client/worker_protocol.h"
#include "worker/command_tensors.h"
#include "worker/update_permissions.h"

namespace muster {
namespace {

constexpr int kRunnerCountMax = 1024;
constexpr absl::Duration kHeartbeatIntervalMin = absl::Milliseconds(1);

// A connected coordinator may be silent for this time, even if the grace period
// is shorter.
constexpr absl::Duration kSilenceMin = absl::Seconds(2);

// The tick interval without a session.
constexpr absl::Duration kIdleTick = absl::Milliseconds(500);

}  // namespace

// One coordinator's stream and the session that it controls.
class WorkerService::Conversation final
    : public StreamObserver,
      public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(WorkerService* service, std::shared_ptr<Stream> stream)
      : service_(service), stream_(std::move(stream)) {}
  ~Conversation() override { joined_.Take(); }

  void OnMessage(ReceivedMessage message) override {
    silent_ticks_.store(0, std::memory_order_relaxed);
    const absl::Status status = Handle(message);
    if (status.ok()) return;
    service_->rejections_.Write(
        absl::StrCat("rejected a coordinator: ", status.message()));
    if (session_ != nullptr) session_->Stop();
    stream_->Finish(status);
  }

  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }

  void OnDone(const absl::Status& status) override {
    if (session_ != nullptr) session_->Stop();
    service_->Leave(this, status);
  }

  // Ends the session. OnDone() is called later.
  void Cancel() {
    if (session_ != nullptr) session_->Stop();
    stream_->Cancel();
  }

  // Blocks until the running closures have finished. Call after Cancel() or
  // OnDone().
  void Join() {
    session_->Join();
    joined_.Give();
  }

  // Called once per heartbeat interval. Returns false if no message has arrived
  // for silent_ticks_max_ intervals.
  bool Tick() {
    if (silent_ticks_.fetch_add(1) >= silent_ticks_max_) return false;
    stream_->Send(Message()).IgnoreError();
    return true;
  }

  absl::Duration heartbeat_interval() const { return heartbeat_interval_; }
  // How long ago the last message arrived.
  absl::Duration silence() const {
    return silent_ticks_.load(std::memory_order_relaxed) * heartbeat_interval_;
  }
  const std::string& job_id() const { return job_id_; }
  WorkerSession* session() const { return session_.get(); }

 private:
  absl::Status Handle(const ReceivedMessage& message) {
    ASSIGN_OR_RETURN(const auto command,
                     message.ParseBody<proto::WorkerCommand>());
    if (session_ == nullptr) {
      if (!command.has_opening()) {
        return absl::FailedPreconditionError(
            "the first command of a session must have an opening");
      }
      RETURN_IF_ERROR(Open(command.opening(), message.identity()));
    } else if (command.has_opening()) {
      return absl::FailedPreconditionError(
          "the session has already been opened");
    }
    RETURN_IF_ERROR(FaultPoint("worker.on_command"));
    ASSIGN_OR_RETURN(std::vector<Tensor> tensors, message.ToTensors());
    if (!command.shared_tensors().empty()) {
      ASSIGN_OR_RETURN(
          tensors,
          CollectCommandTensors(command, std::move(tensors),
                                service_->segments_.Find(command.segment_id(),
                                                         message.identity())));
    }
    RETURN_IF_ERROR(session_->Accept(command, tensors));
    if (command.has_job_end()) {
      session_->Stop();
      service_->EndJob(command.job_end());
      stream_->Finish(absl::OkStatus());
    }
    return absl::OkStatus();
  }

  absl::Status Open(const proto::SessionOpening& opening,
                    const proto::RequestIdentity& identity) {
    const Options& options = service_->options_;
    if (const absl::Status agreed = CheckOpening(opening); !agreed.ok()) {
      service_->OnClusterMismatch(agreed);
      return agreed;
    }
    job_id_ = identity.job_id();
    heartbeat_interval_ = std::max<absl::Duration>(
        kHeartbeatIntervalMin,
        absl::Milliseconds(opening.heartbeat_interval_ms()));
    silent_ticks_max_ = static_cast<int>(std::clamp<int64_t>(
        SilenceMax(opening) / heartbeat_interval_, 2, 1 << 20));
    if (opening.closures_per_update() > 0) {
      permissions_ =
          std::make_unique<UpdatePermissions>(opening.closures_per_update());
    }
    variables_ = service_->variables_(
        options.self,
        {.job_id = job_id_,
         .coordinator_epoch = identity.coordinator_epoch(),
         .generation = opening.generation(),
         .server_copy_count = std::max(1, opening.server_copy_count()),
         .serving_tasks = {opening.serving_tasks().begin(),
                           opening.serving_tasks().end()},
         .update_gate = permissions_.get()});
    WorkerSession::Options session_options = options.session;
    session_options.worker_index = options.self.task_index;
    session_options.job_seed = opening.job_seed();
    session_options.runner_count = opening.runner_count();
    session_options.permissions = permissions_.get();
    session_options.gradients_need_permission =
        opening.gradients_need_permission();
    session_ = std::make_unique<WorkerSession>(
        session_options,
        StepRunner::Environment{.ops = service_->ops_,
                                .kernels = service_->kernels_,
                                .variables = variables_.get(),
                                .executable = options.executable},
        &service_->graphs_, service_->clock_,
        [stream = stream_](Message report) {
          stream->Send(report)
              .IgnoreError();  // OnDone() handles a broken stream.
        },
        [service = service_, stream = stream_](const absl::Status& why) {
          service->NoteDeviceLost(why);
          stream->Finish(why);
        });
    RETURN_IF_ERROR(service_->Enter(shared_from_this(), identity, opening));

    proto::WorkerReport report;
    proto::SessionAcceptance* const acceptance = report.mutable_acceptance();
    acceptance->set_incarnation(options.self.incarnation);
    for (const uint64_t fingerprint : service_->graphs_.fingerprints()) {
      acceptance->add_fingerprints(fingerprint);
    }
    return stream_->Send(Message{report.SerializeAsString(), {}});
  }

  // A coordinator that has been silent for the grace period is lost, whether it
  // is connected or not.
  absl::Duration SilenceMax(const proto::SessionOpening& opening) const {
    const absl::Duration heartbeat_timeout =
        absl::Milliseconds(opening.heartbeat_timeout_ms());
    const absl::Duration grace = service_->options_.coordinator_grace.For(
        opening.coordinator_return_timeout_ms());
    if (grace <= absl::ZeroDuration()) return heartbeat_timeout;
    return std::min(heartbeat_timeout, std::max(grace, kSilenceMin));
  }

  absl::Status CheckOpening(const proto::SessionOpening& opening) const {
    const Options& options = service_->options_;
    // The code for errors that a retry cannot fix.
    if (const absl::Status agreed =
            CheckVersionsAgree("the coordinator", opening.version());
        !agreed.ok()) {
      return absl::InvalidArgumentError(agreed.message());
    }
    if (opening.worker_index() != options.self.task_index) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the coordinator expects worker ", opening.worker_index(),
          " at this address, but this task is ", options.self.ToString(),
          "; the two TF_CONFIGs disagree"));
    }
    if (opening.runner_count() < 1 ||
        opening.runner_count() > kRunnerCountMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("closures_in_flight is ", opening.runner_count(),
                       "; expected 1 to ", kRunnerCountMax));
    }
    if (!opening.has_cluster()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ClusterSpec there, DecodeCluster(opening.cluster()));
    const absl::Status agreed =
        CheckClustersAgree(TaskId{TaskType::kChief, 0}, there, options.cluster);
    if (agreed.ok()) return absl::OkStatus();
    // The code for errors that a retry cannot fix.
    return absl::InvalidArgumentError(agreed.message());
  }

  WorkerService* const service_;
  const std::shared_ptr<Stream> stream_;

  // Set by the first message, then constant.
  std::string job_id_;
  absl::Duration heartbeat_interval_ = kIdleTick;
  int silent_ticks_max_ = 2;
  // Null unless training is synchronous. Outlives variables_.
  std::unique_ptr<UpdatePermissions> permissions_;
  std::unique_ptr<SessionVariables> variables_;  // Outlives session_.
  std::unique_ptr<WorkerSession> session_;
  // Orders Join() before the destruction of this object on another thread.
  HandOver joined_;

  // Counted in ticks, not in time, so that the time during which this process
  // was suspended does not make the coordinator appear lost.
  std::atomic<int> silent_ticks_ = 0;
};

WorkerService::WorkerService(const Options& options, const OpRegistry* ops,
                             const KernelRegistry* kernels,
                             VariablesFactory variables, Clock* clock)
    : options_(options),
      ops_(ops),
      kernels_(kernels),
      variables_(std::move(variables)),
      clock_(clock),
      graphs_(ops),
      segments_({.is_enabled = options.shared_memory}),
      rejections_({.line_count_max = 2, .interval = absl::Minutes(1)}, clock,
                  [](absl::string_view line) { LOG(WARNING) << line; }),
      changed_at_(clock->Now()),
      loop_(
          absl::InfiniteDuration(),
          [this](const TickLoop::Turn& turn) { return TakeTurn(turn); }, clock),
      status_([this](StatusReport* report) { AddStatus(report); }) {
  loop_.Start();
}

WorkerService::~WorkerService() {
  Stop();
  loop_.Stop();
}

void WorkerService::AddTo(Service* service) {
  AddTraceMethod(service);
  segments_.AddTo(service);
  service->AddStream(
      kWorkerSessionMethod, [this](std::shared_ptr<Stream> stream) {
        return std::make_shared<Conversation>(this, std::move(stream));
      });
  service->AddUnary(kWorkerFetchResultMethod,
                    [this](ReceivedMessage request, Responder responder) {
                      FetchResult(std::move(request), std::move(responder));
                    });
  service->AddUnary(kEndTaskMethod,
                    [this](ReceivedMessage request, Responder responder) {
                      HandleEndTask(std::move(request), std::move(responder));
                    });
}

absl::Status WorkerService::Enter(std::shared_ptr<Conversation> conversation,
                                  const proto::RequestIdentity& identity,
                                  const proto::SessionOpening& opening) {
  std::shared_ptr<Conversation> replaced;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(RefusalOf(identity.job_id()));
    RETURN_IF_ERROR(options_.admission_check->AdoptCoordinator(identity));
    const bool is_known =
        owner_.has_value() && owner_->name == opening.coordinator();
    if (!is_known) {
      LOG(INFO) << "working for " << opening.coordinator() << ", job "
                << identity.job_id();
    } else if (current_ == nullptr) {
      LOG(INFO) << owner_->name << " has reconnected";
    }
    owner_ = Owner{.job_id = identity.job_id(),
                   .name = opening.coordinator(),
                   .grace = options_.coordinator_grace.For(
                       opening.coordinator_return_timeout_ms())};
    is_coordinator_lost_ = false;
    replaced = std::exchange(current_, std::move(conversation));
    if (replaced != nullptr) JoinSoon(replaced);
    changed_ = true;
    changed_at_ = clock_->Now();
  }
  if (replaced != nullptr) replaced->Cancel();
  return absl::OkStatus();
}

void WorkerService::JoinSoon(std::shared_ptr<Conversation> conversation) {
  dead_.push_back(std::move(conversation));
  loop_.Wake();
}

absl::Status WorkerService::RefusalOf(absl::string_view job_id) const {
  if (stopping_ || job_end_.has_value() || !device_lost_.ok()) {
    return absl::UnavailableError("is about to exit");
  }
  if (!owner_.has_value() || owner_->job_id == job_id) return absl::OkStatus();
  if (current_ != nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("works for ", owner_->name));
  }
  return absl::UnavailableError(absl::StrCat(
      "works for ", owner_->name, ", which disconnected ",
      absl::FormatDuration(owner_->away_ticks * kIdleTick),
      " ago and may reconnect within ", absl::FormatDuration(owner_->grace)));
}

void WorkerService::Leave(Conversation* conversation, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (current_.get() != conversation) return;
  JoinSoon(std::exchange(current_, nullptr));
  changed_ = true;
  changed_at_ = clock_->Now();
  if (job_end_.has_value() || !owner_.has_value()) return;
  ++lost_count_;
  lost_reason_ = why;
  const absl::Duration silence = conversation->silence();
  owner_->away_ticks = silence / kIdleTick;
  if (owner_->grace <= absl::ZeroDuration()) {
    is_coordinator_lost_ = true;
    owner_.reset();
    return;
  }
  LOG(WARNING) << owner_->name << " disconnected: " << why.message()
               << "; waiting "
               << absl::FormatDuration(
                      std::max(owner_->grace - silence, absl::ZeroDuration()))
               << " for it to reconnect";
}

void WorkerService::CountAbsence() {
  if (!owner_.has_value() || ++owner_->away_ticks * kIdleTick < owner_->grace) {
    return;
  }
  LOG(WARNING) << owner_->name << " did not reconnect within "
               << absl::FormatDuration(owner_->grace);
  is_coordinator_lost_ = true;
  changed_ = true;
  owner_.reset();
}

void WorkerService::EndJob(const proto::JobEnd& end) {
  absl::MutexLock lock(&mutex_);
  if (job_end_.has_value()) return;
  if (end.is_withdrawal()) {
    LOG(INFO) << "the coordinator has withdrawn: " << end.reason();
    owner_.reset();
    return;
  }
  job_end_ = JobEnd{.exit_code = end.exit_code(), .reason = end.reason()};
}

void WorkerService::AcceptNextJob() {
  absl::MutexLock lock(&mutex_);
  ++lost_count_;
  job_end_.reset();
  owner_.reset();
}

void WorkerService::OnClusterMismatch(const absl::Status& disagreement) {
  absl::MutexLock lock(&mutex_);
  if (owner_.has_value()) return;
  disagreement_ = disagreement;
  changed_ = true;
}

void WorkerService::NoteDeviceLost(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!device_lost_.ok()) return;
  device_lost_ = why;
  changed_ = true;
}

void WorkerService::HandleEndTask(ReceivedMessage request,
                                  Responder responder) {
  const auto body = request.ParseBody<proto::EndTaskRequest>();
  if (!body.ok()) {
    responder.Respond(body.status());
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    if (owner_.has_value() && owner_->job_id != request.identity().job_id()) {
      responder.Respond(RefusalOf(request.identity().job_id()));
      return;
    }
    if (!job_end_.has_value()) {
      job_end_ =
          JobEnd{.exit_code = body->exit_code(), .reason = body->reason()};
    }
  }
  responder.Respond(Message{proto::EndTaskResponse().SerializeAsString(), {}});
}

void WorkerService::FetchResult(ReceivedMessage request, Responder responder) {
  const auto body = request.ParseBody<proto::FetchResultRequest>();
  if (!body.ok()) {
    responder.Respond(body.status());
    return;
  }
  std::shared_ptr<Conversation> conversation;
  {
    absl::MutexLock lock(&mutex_);
    conversation = current_;
  }
  if (conversation == nullptr ||
      conversation->job_id() != request.identity().job_id()) {
    responder.Respond(absl::NotFoundError(
        absl::StrCat(options_.self.ToString(), " has no session of this job, ",
                     "so it holds none of its results")));
    return;
  }
  if (const absl::Status fault = FaultPoint("worker.before_fetch");
      !fault.ok()) {
    responder.Respond(fault);
    return;
  }
  absl::StatusOr<std::vector<Tensor>> results =
      conversation->session()->FetchResult(body->closure_id());
  if (!results.ok()) {
    responder.Respond(results.status());
    return;
  }
  responder.Respond(Message{proto::FetchResultResponse().SerializeAsString(),
                            *std::move(results)});
}

absl::StatusOr<WorkerService::JobEnd> WorkerService::AwaitJobEnd(
    const WaitOptions& options,
    const std::function<void(absl::string_view)>& report) {
  CoordinatorWait wait(options.coordinator, clock_->Now());
  absl::Time next_look = absl::InfinitePast();
  while (true) {
    absl::StatusOr<std::string> line;
    {
      absl::MutexLock lock(&mutex_);
      clock_->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &WorkerService::HasChanged),
          next_look);
      if (job_end_.has_value()) return *job_end_;
      if (stopping_) return absl::CancelledError("this worker was stopped");
      if (!disagreement_.ok()) {
        return WithExitCode(disagreement_, ExitCode::kUsage);
      }
      if (!device_lost_.ok()) {
        return WithExitCode(device_lost_, ExitCode::kRestartMe);
      }
      changed_ = false;
      const bool is_alone = current_ == nullptr;
      if (is_alone && is_coordinator_lost_ &&
          options.exit_when_coordinator_lost) {
        return WithExitCode(
            absl::UnavailableError(absl::StrCat("the coordinator is lost: ",
                                                lost_reason_.message())),
            ExitCode::kRestartMe);
      }
      line = wait.Look(is_alone, lost_count_, clock_->Now());
      if (!line.ok()) {
        return WithExitCode(line.status(), ExitCode::kRestartMe);
      }
    }
    if (!line->empty()) report(*line);
    next_look = wait.next_look();
  }
}

void WorkerService::Stop() {
  std::shared_ptr<Conversation> conversation;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    conversation = current_;
  }
  if (conversation != nullptr) conversation->Cancel();
}

void WorkerService::AddStatus(StatusReport* report) const {
  TaskStatus coordinator = {.task = "chief"};
  absl::MutexLock lock(&mutex_);
  if (current_ != nullptr) {
    coordinator.state = TaskStatus::State::kConnected;
    report->readiness.push_back(absl::OkStatus());
  } else {
    if (job_end_.has_value()) {
      coordinator.state = TaskStatus::State::kEnded;
    } else if (lost_count_ > 0) {
      coordinator.state = TaskStatus::State::kLost;
    }
    coordinator.problem = std::string(lost_reason_.message());
    report->readiness.push_back(
        absl::UnavailableError("no coordinator is connected"));
  }
  coordinator.in_state = clock_->Now() - changed_at_;
  report->tasks.push_back(std::move(coordinator));
}

bool WorkerService::has_coordinator() const {
  absl::MutexLock lock(&mutex_);
  return current_ != nullptr;
}

absl::Time WorkerService::TakeTurn(const TickLoop::Turn& turn) {
  const bool is_tick = turn.now >= next_tick_;
  std::shared_ptr<Conversation> conversation;
  std::vector<std::shared_ptr<Conversation>> dead;
  {
    absl::MutexLock lock(&mutex_);
    conversation = current_;
    dead = std::exchange(dead_, {});
    if (is_tick && current_ == nullptr) CountAbsence();
  }
  // Joined on this thread, because the transport's threads must not wait for
  // closures.
  for (const auto& ended : dead) ended->Join();
  dead.clear();
  if (!is_tick) return next_tick_;
  next_tick_ = clock_->Now() + (conversation == nullptr
                                    ? kIdleTick
                                    : conversation->heartbeat_interval());
  if (conversation != nullptr && !conversation->Tick()) {
    LOG(WARNING)
        << "closing the session: the coordinator has missed its heartbeats";
    conversation->Cancel();
  }
  return next_tick_;
}

}  // namespace muster
