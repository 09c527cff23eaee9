#include "common/net/rpc/identity.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/refused_requests.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kEarlierCoordinatorUrl =
    "type.muster/EarlierCoordinator";
constexpr absl::string_view kEarlierProcessUrl = "type.muster/EarlierProcess";

}  // namespace

std::string TaskIdentity::ToString() const {
  return absl::StrCat(task_type, " ", task_index);
}

std::string IncarnationString(uint64_t incarnation) {
  return absl::StrCat(absl::Hex(incarnation, absl::kZeroPad16));
}

AdmissionCheck::AdmissionCheck(TaskIdentity self) : self_(std::move(self)) {}

absl::Status AdmissionCheck::AdoptJob(const proto::RequestIdentity& identity) {
  absl::MutexLock lock(&mutex_);
  if (!job_id_.empty() && job_id_ != identity.job_id()) {
    return Refuse(
        "other_job",
        absl::FailedPreconditionError(absl::StrCat(
            self_.ToString(),
            " already works for another job and cannot join job ",
            identity.job_id(),
            "; stop that job first, or give this one servers of its own")));
  }
  RETURN_IF_ERROR(CheckCoordinator(identity));
  coordinated_job_id_ = job_id_ = identity.job_id();
  coordinator_epoch_ = identity.coordinator_epoch();
  return absl::OkStatus();
}

absl::Status AdmissionCheck::AdoptCoordinator(
    const proto::RequestIdentity& identity) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckCoordinator(identity));
  coordinated_job_id_ = identity.job_id();
  coordinator_epoch_ = identity.coordinator_epoch();
  return absl::OkStatus();
}

void AdmissionCheck::ReleaseJob() {
  absl::MutexLock lock(&mutex_);
  job_id_.clear();
}

void AdmissionCheck::SetHasCoordinator(bool has_coordinator) {
  absl::MutexLock lock(&mutex_);
  has_coordinator_ = has_coordinator;
}

std::string AdmissionCheck::job_id() const {
  absl::ReaderMutexLock lock(&mutex_);
  return job_id_;
}

absl::Status AdmissionCheck::Check(const proto::RequestIdentity& identity) {
  {
    absl::ReaderMutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckJob(identity));
    RETURN_IF_ERROR(CheckTarget(identity));
    const bool is_known = !IsOfCoordinatedJob(identity) ||
                          identity.coordinator_epoch() == coordinator_epoch_;
    if (is_known) return absl::OkStatus();
  }
  absl::MutexLock lock(&mutex_);
  return CheckCoordinator(identity);
}

bool AdmissionCheck::IsOfCoordinatedJob(
    const proto::RequestIdentity& identity) const {
  return !coordinated_job_id_.empty() &&
         identity.job_id() == coordinated_job_id_;
}

absl::Status AdmissionCheck::CheckCoordinator(
    const proto::RequestIdentity& identity) {
  if (!IsOfCoordinatedJob(identity)) return absl::OkStatus();
  const uint64_t epoch = identity.coordinator_epoch();
#ifdef MUSTER_PLANT_NO_FENCING
  return absl::OkStatus();
#endif
  if (epoch < coordinator_epoch_) {
    absl::Status refusal = absl::FailedPreconditionError(absl::StrCat(
        self_.ToString(), " works for coordinator epoch ", coordinator_epoch_,
        " of this job; ", identity.caller_task(), " asked for epoch ", epoch,
        ", whose coordinator has been replaced"));
    refusal.SetPayload(kEarlierCoordinatorUrl, absl::Cord());
    return Refuse("earlier_coordinator", std::move(refusal));
  }
  coordinator_epoch_ = epoch;
  return absl::OkStatus();
}

absl::Status AdmissionCheck::CheckJob(
    const proto::RequestIdentity& identity) const {
  if (job_id_.empty() || identity.job_id() == job_id_) return absl::OkStatus();
  return Refuse(
      "other_job",
      absl::Status(
          has_coordinator_ ? absl::StatusCode::kPermissionDenied
                           : absl::StatusCode::kUnavailable,
          absl::StrCat(self_.ToString(), " works for another job; ",
                       identity.caller_task(), " asked on behalf of ",
                       identity.job_id().empty()
                           ? std::string("no job")
                           : absl::StrCat("job ", identity.job_id()))));
}

absl::Status AdmissionCheck::CheckTarget(
    const proto::RequestIdentity& identity) const {
  if (identity.target_incarnation() == 0 ||
      identity.target_incarnation() == self_.incarnation) {
    return absl::OkStatus();
  }
  absl::Status refusal = absl::FailedPreconditionError(absl::StrCat(
      "the request is meant for ", self_.ToString(), " incarnation ",
      IncarnationString(identity.target_incarnation()),
      ", which has ended: the process was restarted and what it held is gone"));
  refusal.SetPayload(kEarlierProcessUrl, absl::Cord());
  return Refuse("stale_incarnation", std::move(refusal));
}

bool IsForEarlierProcess(const absl::Status& status) {
  return status.GetPayload(kEarlierProcessUrl).has_value();
}

bool IsOfEarlierCoordinator(const absl::Status& status) {
  return status.GetPayload(kEarlierCoordinatorUrl).has_value();
}

absl::Status AdmissionCheck::Refuse(const char* cause,
                                    absl::Status status) const {
  CountRefusedRequest(cause);
  // Contains nothing but the name of this task, which is no secret: the caller
  // has not been identified.
  proto::TaskFailure failure;
  failure.set_task_type(self_.task_type);
  failure.set_task_index(self_.task_index);
  return WithTaskFailure(std::move(status), failure);
}

}  // namespace muster
