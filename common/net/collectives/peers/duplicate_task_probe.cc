#include "common/net/collectives/peers/duplicate_task_probe.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/system/log.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kIdentifyMethod = "/muster.PeerGroup/Identify";
constexpr absl::Duration kTimeout = absl::Seconds(2);

}  // namespace

std::string DescribeProcess(TaskId task, absl::string_view address,
                            uint64_t incarnation) {
  return absl::StrCat(task.ToString(), " (", address, ", incarnation ",
                      IncarnationString(incarnation), ")");
}

DuplicateTaskProbe::DuplicateTaskProbe(Self self, std::string cluster_address,
                                       std::unique_ptr<Channel> channel)
    : self_(std::move(self)),
      cluster_address_(std::move(cluster_address)),
      channel_(std::move(channel)) {}

void DuplicateTaskProbe::AddTo(Service* service) {
  service->AddCall<proto::IdentifyRequest, proto::IdentifyResponse>(
      kIdentifyMethod, [this](const proto::IdentifyRequest& request) {
        return Answer(request);
      });
}

void DuplicateTaskProbe::Start(std::function<void(absl::Status)> done) {
  channel_->StartCall(
      kIdentifyMethod, Message{Request().SerializeAsString(), {}},
      {.timeout = kTimeout},
      [this, done = std::move(done)](absl::StatusOr<ReceivedMessage> received) {
        done(received.ok()
                 ? Compare(received->ParseBody<proto::IdentifyResponse>())
                 : absl::OkStatus());
      });
}

absl::Status DuplicateTaskProbe::Find() {
  return Compare(channel_->Call<proto::IdentifyResponse>(
      kIdentifyMethod, Request(), {.timeout = kTimeout}));
}

proto::IdentifyRequest DuplicateTaskProbe::Request() const {
  proto::IdentifyRequest request;
  *request.mutable_task() = EncodeTask(self_.task);
  request.set_incarnation(self_.incarnation);
  request.set_address(self_.address);
  return request;
}

absl::StatusOr<proto::IdentifyResponse> DuplicateTaskProbe::Answer(
    const proto::IdentifyRequest& request) {
  const absl::StatusOr<TaskId> task = DecodeTask(request.task());
  if (task.ok() && *task == self_.task &&
      request.incarnation() != self_.incarnation) {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(last_duplicate_, request.incarnation()) !=
        request.incarnation()) {
      LOG(WARNING) << "a second process calls itself "
                   << DescribeProcess(*task, request.address(),
                                      request.incarnation())
                   << "; it was refused, because this one is already running";
    }
  }
  proto::IdentifyResponse response;
  *response.mutable_task() = EncodeTask(self_.task);
  response.set_incarnation(self_.incarnation);
  response.set_address(self_.address);
  return response;
}

absl::Status DuplicateTaskProbe::Compare(
    const absl::StatusOr<proto::IdentifyResponse>& response) const {
  if (!response.ok() || response->incarnation() == self_.incarnation) {
    return absl::OkStatus();
  }
  const absl::StatusOr<TaskId> task = DecodeTask(response->task());
  if (!task.ok()) return absl::OkStatus();
  return WithGroupErrorKind(
      absl::FailedPreconditionError(absl::StrCat(
          DescribeProcess(*task, cluster_address_, response->incarnation()),
          " is already there, at the address of this task, which calls itself ",
          DescribeProcess(self_.task, self_.address, self_.incarnation),
          "; give every task an index of its own in TF_CONFIG, and stop what "
          "is left of an earlier run")),
      GroupErrorKind::kDuplicateTask);
}

}  // namespace muster
