#include "common/net/process/job_control_service.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/net/cluster/address.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/task_id.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/process/job_control.h"
#include "common/net/rpc/message.h"
#include "common/net/status/job_trace.h"
#include "proto/job_control.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr size_t kQuotedBytesMax = 64;
constexpr absl::Duration kTraceDurationMax = absl::Minutes(10);

// Parses "worker 1", "worker:1" or "worker-1".
absl::StatusOr<TaskId> ParseTaskName(absl::string_view name) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits(absl::ByAnyChar(" :-"), 1));
  TaskId task;
  ASSIGN_OR_RETURN(task.type, ParseTaskType(parts.first));
  if (absl::SimpleAtoi(parts.second, &task.index) && task.index >= 0) {
    return task;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::CHexEscape(name.substr(0, kQuotedBytesMax)),
      "\" names no task; expected a role and a number, as in worker:1"));
}

JobControl::Done Answering(Responder responder) {
  return [responder = std::move(responder)](
             absl::StatusOr<std::string> outcome) mutable {
    if (!outcome.ok()) {
      responder.Respond(outcome.status());
      return;
    }
    proto::JobControlResponse response;
    response.set_checkpoint(*std::move(outcome));
    responder.Respond(Message{response.SerializeAsString(), {}});
  };
}

void Ask(JobControl::Action action, absl::string_view what,
         const ReceivedMessage& request, Responder responder) {
  LOG(INFO) << request.identity().caller_task() << " asks for " << what;
  JobControl::OfProcess().Ask(action, Answering(std::move(responder)));
}

void Drain(const ReceivedMessage& request, Responder responder) {
  const auto body = request.ParseBody<proto::DrainRequest>();
  if (!body.ok()) {
    responder.Respond(body.status());
    return;
  }
  const absl::StatusOr<TaskId> task = ParseTaskName(body->task());
  if (!task.ok()) {
    responder.Respond(task.status());
    return;
  }
  LOG(INFO) << request.identity().caller_task() << " asks to drain " << *task;
  JobControl::OfProcess().RequestDrain(*task, Answering(std::move(responder)));
}

// Returns the host at which operators reach this task.
std::string OwnHost(const ClusterConfig& config) {
  const absl::StatusOr<std::string> own = config.cluster.Address(config.task);
  if (!own.ok()) return "localhost";
  const absl::StatusOr<HostPort> parsed = ParseHostPort(*own);
  return parsed.ok() ? parsed->host : "localhost";
}

}  // namespace

bool LeadsJob(const ClusterConfig& config) {
  return config.task.type != TaskType::kEvaluator &&
         (config.IsAlone() || config.cluster.IsChief(config.task));
}

JobControlService::JobControlService(const TaskIdentity& identity)
    : traces_("job_trace", 1), admission_check_(identity) {
  methods_.AddUnary(kCheckpointJobMethod,
                    [](ReceivedMessage request, Responder responder) {
                      Ask(JobControl::Action::kCheckpoint, "a checkpoint",
                          request, std::move(responder));
                    });
  methods_.AddUnary(kStopJobMethod,
                    [](ReceivedMessage request, Responder responder) {
                      Ask(JobControl::Action::kStop, "the end of training",
                          request, std::move(responder));
                    });
  methods_.AddUnary(kDrainTaskMethod,
                    [](ReceivedMessage request, Responder responder) {
                      Drain(request, std::move(responder));
                    });
  methods_.AddUnary(kTraceJobMethod,
                    [this](ReceivedMessage request, Responder responder) {
                      Trace(request, std::move(responder));
                    });
}

JobControlService::~JobControlService() {
  absl::MutexLock lock(&mutex_);
  is_ending_ = true;
}

void JobControlService::Trace(const ReceivedMessage& request,
                              Responder responder) {
  const auto body = request.ParseBody<proto::JobTraceRequest>();
  if (!body.ok()) {
    responder.Respond(body.status());
    return;
  }
  const absl::Duration duration = absl::Milliseconds(body->duration_ms());
  if (duration <= absl::ZeroDuration() || duration > kTraceDurationMax) {
    responder.Respond(absl::InvalidArgumentError(absl::StrCat(
        "a trace of ", absl::FormatDuration(duration), "; expected 1ms to ",
        absl::FormatDuration(kTraceDurationMax))));
    return;
  }
  LOG(INFO) << request.identity().caller_task() << " asks for a trace of "
            << absl::FormatDuration(duration);
  traces_.Schedule(
      [this, duration, responder = std::move(responder)]() mutable {
        responder.Respond(Record(duration));
      });
}

absl::StatusOr<Message> JobControlService::Record(absl::Duration duration) {
  RETURN_IF_ERROR(JobTrace::OfProcess().Begin());
  {
    Clock* const clock = Clock::Real();
    absl::MutexLock lock(&mutex_);
    clock->AwaitWithDeadline(&mutex_, absl::Condition(&is_ending_),
                             clock->Now() + duration);
  }
  proto::JobTraceResponse response;
  ASSIGN_OR_RETURN(*response.mutable_trace(), JobTrace::OfProcess().End());
  return Message{response.SerializeAsString(), {}};
}

absl::StatusOr<std::unique_ptr<JobControlService>> JobControlService::Serve(
    const TaskOptions& options, const TaskIdentity& identity,
    Network* network) {
  const ClusterConfig& config = options.config;
  if (!options.control_port.has_value() || !LeadsJob(config)) return nullptr;
  std::unique_ptr<JobControlService> service(new JobControlService(identity));
  const bool is_remote = !options.remote_address.empty();
  const HostPort listen = {is_remote ? "::" : "localhost",
                           *options.control_port};
  ASSIGN_OR_RETURN(
      service->server_,
      network->Listen({.address = listen.ToString()}, &service->methods_,
                      &service->admission_check_));
  ASSIGN_OR_RETURN(const HostPort bound,
                   ParseHostPort(service->server_->address()));
  const std::string address = HostPort{OwnHost(config), bound.port}.ToString();
  service->status_ = std::make_unique<StatusSource>(
      [address](StatusReport* report) { report->control_address = address; });
  WriteLogLine(LogSeverity::kInfo, absl::StrCat("job control: ", address));
  return service;
}

}  // namespace muster
