#include "ps/copy_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/rpc/channel.h"
#include "proto/rpc.pb.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

// These read no variable, and are of use while answers wait.
constexpr absl::string_view kFreeMethods[] = {kDescribeMethod, kEndTaskMethod,
                                              kTraceTaskMethod};

bool IsFree(absl::string_view method) {
  return std::find(std::begin(kFreeMethods), std::end(kFreeMethods), method) !=
         std::end(kFreeMethods);
}

}  // namespace

CopyService::CopyService(Parts parts)
    : parts_(std::move(parts)),
      source_(parts_.shard,
              [this](const absl::Status& why) { OnReplaced(why); }),
      receiver_(parts_.admission_check, parts_.shard),
      pool_("ps_copy", 1) {}

void CopyService::AddTo(Service* service) {
  service->WrapUnary(
      [this](absl::string_view method, Service::UnaryHandler handler) {
        return IsFree(method) ? handler : Guard(std::move(handler));
      });
  service->AddUnary(kKeepCopyMethod,
                    [this](ReceivedMessage message, Responder responder) {
                      responder.Respond(KeepCopy(message));
                    });
  service->AddUnary(
      kTakeOverMethod, [this](ReceivedMessage message, Responder responder) {
        pool_.Schedule([this, message = std::move(message),
                        responder = std::move(responder)]() mutable {
          responder.Respond(TakeOver(message));
        });
      });
  service->AddStream(kCopyMethod, [this](std::shared_ptr<Stream> stream) {
    is_used_.store(true);
    return receiver_.Open(std::move(stream));
  });
}

Service::UnaryHandler CopyService::Guard(Service::UnaryHandler handler) {
  return [this, handler = std::move(handler)](ReceivedMessage message,
                                              Responder responder) {
    if (!is_used_.load(std::memory_order_acquire)) {
      handler(std::move(message), std::move(responder));
      return;
    }
    if (const absl::Status serves = CheckServes(); !serves.ok()) {
      responder.Respond(serves);
      return;
    }
    handler(std::move(message),
            Responder([this, responder = std::move(responder)](
                          absl::StatusOr<Message> answer) mutable {
              source_.WhenReceived([responder = std::move(responder),
                                    answer = std::move(answer)](
                                       const absl::Status& received) mutable {
                responder.Respond(received.ok() ? std::move(answer) : received);
              });
            }));
  };
}

absl::Status CopyService::CheckServes() const {
  if (receiver_.is_holder()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process holds a copy of ", receiver_.source(),
                     " and does not serve"));
  }
  absl::MutexLock lock(&mutex_);
  return replaced_;
}

absl::StatusOr<Message> CopyService::KeepCopy(const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const proto::KeepCopyRequest request,
                   message.ParseBody<proto::KeepCopyRequest>());
  const proto::RequestIdentity& caller = message.identity();
  if (caller.target_incarnation() == 0) {
    return absl::InvalidArgumentError(
        "the request must set the callee's incarnation: another process may "
        "have taken over");
  }
  RETURN_IF_ERROR(parts_.admission_check->AdoptJob(caller));
  is_used_.store(true);
  if (request.is_replaced()) {
    OnReplaced(absl::UnavailableError(
        "another process serves the variables of this one"));
    return Message{proto::KeepCopyResponse().SerializeAsString(), {}};
  }
  RETURN_IF_ERROR(CheckServes());
  if (!request.has_holder()) {
    source_.Drop();
    return Message{proto::KeepCopyResponse().SerializeAsString(), {}};
  }
  const TaskIdentity& self = parts_.admission_check->self();
  ChannelOptions channel;
  channel.address = request.holder().address();
  channel.peer_task_type = self.task_type;
  channel.peer_task_index = request.holder().task_index();
  channel.target_incarnation = request.holder().incarnation();
  channel.caller = self;
  channel.job_id = caller.job_id();
  channel.coordinator_epoch = caller.coordinator_epoch();
  channel.probes_bandwidth = true;
  parts_.shard->SetRecorder(&source_);
  source_.Keep(request.holder(), parts_.network->Connect(channel),
               {.task = self.ToString(),
                .incarnation = self.incarnation,
                .state_id = parts_.state_id(),
                .job = parts_.job(caller)});
  return Message{proto::KeepCopyResponse().SerializeAsString(), {}};
}

absl::StatusOr<Message> CopyService::TakeOver(const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const proto::TakeOverRequest request,
                   message.ParseBody<proto::TakeOverRequest>());
  std::optional<CopyReceiver::Taken> taken;
  {
    absl::MutexLock lock(&mutex_);
    taken = taken_;
  }
  if (!taken.has_value() || taken->state_id != request.state_id() ||
      receiver_.is_holder()) {
    ASSIGN_OR_RETURN(taken, receiver_.TakeOver(request.state_id(),
                                               request.log_number_min()));
    source_.SetLogNumber(taken->log_number);
    {
      absl::MutexLock lock(&mutex_);
      taken_ = taken;
      state_id_ = taken->state_id;
    }
    LOG(INFO) << "took over from " << receiver_.source() << " with "
              << parts_.shard->activity().update_count << " updates";
    parts_.on_taken_over();
  }
  proto::TakeOverResponse response;
  response.set_log_number(taken->log_number);
  response.set_update_count(parts_.shard->activity().update_count);
  return Message{response.SerializeAsString(), {}};
}

void CopyService::OnReplaced(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    replaced_ = why;
  }
  parts_.on_replaced(why);
}

std::optional<uint64_t> CopyService::state_id() const {
  absl::MutexLock lock(&mutex_);
  return state_id_;
}

proto::CopyStatus CopyService::status() const {
  if (!receiver_.is_holder()) return source_.status();
  proto::CopyStatus status;
  status.set_is_holder(true);
  status.set_is_complete(receiver_.is_complete());
  status.set_state_id(receiver_.state_id());
  return status;
}

void CopyService::SetWatchFields(proto::WatchEvent* event) const {
  if (!is_used_.load()) return;
  *event->mutable_copy() = status();
  event->set_log_number(receiver_.is_holder() ? receiver_.log_number()
                                              : source_.log_number());
}

void CopyService::End() {
  source_.End(absl::UnavailableError("this process has dropped its variables"));
}

void CopyService::Reset() {
  if (!is_used_.load()) return;
  receiver_.Reset();
  End();
  parts_.shard->Clear();
  source_.Reopen();
  absl::MutexLock lock(&mutex_);
  taken_.reset();
  state_id_ = RandomIdentity();
  replaced_ = absl::OkStatus();
}

}  // namespace muster
