#include "common/net/cluster/cluster_codec.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "proto/cluster.pb.h"

namespace muster {
namespace {

proto::Task::Type EncodeType(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return proto::Task::CHIEF;
    case TaskType::kWorker:
      return proto::Task::WORKER;
    case TaskType::kPs:
      return proto::Task::PS;
    case TaskType::kEvaluator:
      return proto::Task::EVALUATOR;
  }
  return proto::Task::UNKNOWN;
}

absl::StatusOr<TaskType> DecodeType(proto::Task::Type type) {
  switch (type) {
    case proto::Task::CHIEF:
      return TaskType::kChief;
    case proto::Task::WORKER:
      return TaskType::kWorker;
    case proto::Task::PS:
      return TaskType::kPs;
    case proto::Task::EVALUATOR:
      return TaskType::kEvaluator;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "task type ", static_cast<int>(type),
          " is unknown; 1 to 4 are chief, worker, ps and evaluator"));
  }
}

}  // namespace

proto::Task EncodeTask(TaskId task) {
  proto::Task encoded;
  encoded.set_type(EncodeType(task.type));
  encoded.set_index(task.index);
  return encoded;
}

absl::StatusOr<TaskId> DecodeTask(const proto::Task& task) {
  TaskId decoded;
  ASSIGN_OR_RETURN(decoded.type, DecodeType(task.type()));
  if (task.index() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("task index ", task.index(), " is negative"));
  }
  decoded.index = task.index();
  return decoded;
}

proto::Cluster EncodeCluster(const ClusterSpec& cluster) {
  proto::Cluster encoded;
  for (const auto& [type, job] : cluster.jobs()) {
    proto::Cluster::Job& encoded_job = *encoded.add_jobs();
    encoded_job.set_type(EncodeType(type));
    encoded_job.set_sparse(job.sparse);
    for (const auto& [index, address] : job.addresses) {
      (*encoded_job.mutable_addresses())[index] = address;
    }
  }
  return encoded;
}

absl::StatusOr<ClusterSpec> DecodeCluster(const proto::Cluster& cluster) {
  std::map<TaskType, JobSpec> jobs;
  for (const proto::Cluster::Job& encoded : cluster.jobs()) {
    ASSIGN_OR_RETURN(const TaskType type, DecodeType(encoded.type()));
    JobSpec job;
    job.sparse = encoded.sparse();
    for (const auto& [index, address] : encoded.addresses()) {
      job.addresses.emplace(index, address);
    }
    if (!jobs.emplace(type, std::move(job)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(TaskTypeName(type), " is in the cluster twice"));
    }
  }
  return ClusterSpec::Create(std::move(jobs));
}

}  // namespace muster
