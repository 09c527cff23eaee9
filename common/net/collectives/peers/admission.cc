#include "common/net/collectives/peers/admission.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/cluster_differences.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/rpc/identity.h"

namespace muster {
namespace {

absl::Status Disagreement(absl::string_view message) {
  return WithGroupErrorKind(absl::FailedPreconditionError(message),
                            GroupErrorKind::kDisagreement);
}

}  // namespace

std::vector<TaskId> GroupTasks(const ClusterSpec& cluster) {
  std::vector<TaskId> tasks = cluster.Tasks(TaskType::kChief);
  for (const TaskId task : cluster.Tasks(TaskType::kWorker)) {
    tasks.push_back(task);
  }
  return tasks;
}

Admission::Admission(Options options)
    : options_(std::move(options)), tasks_(GroupTasks(options_.cluster)) {}

proto::PeerHello Admission::Hello(std::optional<TaskId> target) const {
  proto::PeerHello hello;
  *hello.mutable_task() = EncodeTask(options_.task);
  hello.set_incarnation(options_.incarnation);
  hello.set_view(options_.view);
  hello.set_address(options_.address);
  if (target.has_value()) *hello.mutable_target() = EncodeTask(*target);
  *hello.mutable_cluster() = EncodeCluster(options_.cluster);
  hello.set_replica_count(options_.replicas_per_task);
  options_.digest.EncodeTo(&hello);
  *hello.mutable_transports() = options_.transports;
  if (!options_.failure.ok()) {
    *hello.mutable_failure() = EncodeFailure(options_.failure, true);
  }
  return hello;
}

absl::Status Admission::Check(const proto::PeerHello& hello, int rank) const {
  ASSIGN_OR_RETURN(const TaskId peer, DecodeTask(hello.task()));
  if (hello.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(peer.ToString(), " gives no incarnation"));
  }
  if (rank >= 0 && peer != tasks_[rank]) {
    return absl::NotFoundError(
        absl::StrCat("the process there says that it is ", peer.ToString(),
                     ", incarnation ", IncarnationString(hello.incarnation()),
                     "; check the task index in its TF_CONFIG"));
  }
  if (rank < 0 && hello.has_target()) {
    ASSIGN_OR_RETURN(const TaskId target, DecodeTask(hello.target()));
    if (target != options_.task) {
      return absl::NotFoundError(absl::StrCat(
          "this is ", options_.task.ToString(), ", incarnation ",
          IncarnationString(options_.incarnation), ", and not ",
          target.ToString(), "; check the task index in its TF_CONFIG"));
    }
  }
  if (hello.view() != options_.view) {
    return absl::AbortedError(
        absl::StrCat(peer.ToString(), " is in view ", hello.view(),
                     " of the group, and this task in view ", options_.view));
  }
  return CheckAgreement(peer, hello);
}

absl::Status Admission::CheckAgreement(TaskId peer,
                                       const proto::PeerHello& hello) const {
  ASSIGN_OR_RETURN(const ClusterSpec there, DecodeCluster(hello.cluster()));
  const absl::Status agreed = CheckClustersAgree(peer, there, options_.cluster);
  if (!agreed.ok()) return Disagreement(agreed.message());
  bool is_known = false;
  for (const TaskId task : tasks_) is_known |= task == peer;
  if (!is_known) {
    return Disagreement(absl::StrCat(
        peer.ToString(), " is none of the tasks that train together: ",
        options_.cluster.ToString()));
  }
  // A task that fails early has no replica count or job digest to compare.
  if (hello.has_failure() || !options_.failure.ok()) return absl::OkStatus();
  if (hello.replica_count() != options_.replicas_per_task) {
    return Disagreement(absl::StrCat(
        peer.ToString(), " and this task disagree about the replicas: ",
        hello.replica_count(), " there and ", options_.replicas_per_task,
        " here; every task must have as many devices as the others"));
  }
  const std::string difference = options_.digest.DescribeDifference(hello);
  if (difference.empty()) return absl::OkStatus();
  return Disagreement(absl::StrCat(
      peer.ToString(), " and this task disagree about the job: ", difference,
      "; start every task with the same"));
}

}  // namespace muster
