#include "common/net/rpc/peer.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/status_message.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster {

Peer::Peer(const ChannelOptions& options, bool has_tls)
    : task_type_(options.peer_task_type),
      task_index_(options.peer_task_index),
      address_(options.address),
      name_(absl::StrCat(options.peer_task_type, " ", options.peer_task_index,
                         " (", options.address, ")")),
      has_tls_(has_tls),
      caller_(options.caller),
      caller_name_(options.caller.ToString()),
      coordinator_epoch_(options.coordinator_epoch),
      target_incarnation_(options.target_incarnation),
      job_id_(options.job_id) {}

void Peer::SetJobId(absl::string_view job_id) {
  absl::MutexLock lock(&mutex_);
  job_id_ = std::string(job_id);
}

proto::RequestIdentity Peer::SignRequest() const {
  proto::RequestIdentity identity;
  {
    absl::ReaderMutexLock lock(&mutex_);
    identity.set_job_id(job_id_);
  }
  identity.set_caller_task(caller_name_);
  identity.set_caller_incarnation(caller_.incarnation);
  identity.set_target_incarnation(target_incarnation());
  identity.set_coordinator_epoch(coordinator_epoch_);
  return identity;
}

absl::Status Peer::AddContext(const absl::Status& status,
                              absl::string_view attempted,
                              absl::Duration waited) const {
  if (status.ok()) return status;
  proto::TaskFailure failure;
  {
    absl::ReaderMutexLock lock(&mutex_);
    failure.set_job_id(job_id_);
  }
  failure.set_task_type(task_type_);
  failure.set_task_index(task_index_);
  failure.set_address(address_);
  failure.set_incarnation(target_incarnation());
  failure.set_attempted(std::string(attempted));
  failure.set_waited_seconds(absl::ToDoubleSeconds(waited));
  std::string message = absl::StrCat(name_, ": ");
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    absl::StrAppend(
        &message, "no answer to ", attempted, " within ",
        absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1))), ": ");
  }
  absl::StrAppend(&message, status.message());
  if (has_tls_ && status.message() == "socket closed") {
    absl::StrAppend(&message,
                    "; if it still runs, it does not accept this task's "
                    "certificate, and its log says why");
  }
  return WithTaskFailure(WithMessage(status, message), failure);
}

}  // namespace muster
