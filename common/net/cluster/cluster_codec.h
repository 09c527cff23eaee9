#ifndef COMMON_NET_CLUSTER_CLUSTER_CODEC_H_
#define COMMON_NET_CLUSTER_CLUSTER_CODEC_H_

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

namespace proto {
class Cluster;
class Task;
}  // namespace proto

proto::Task EncodeTask(TaskId task);

//   kInvalidArgument  an unknown role or a negative index
absl::StatusOr<TaskId> DecodeTask(const proto::Task& task);

proto::Cluster EncodeCluster(const ClusterSpec& cluster);

//   kInvalidArgument  an unknown role, a repeated role, or as
//                     ClusterSpec::Create()
absl::StatusOr<ClusterSpec> DecodeCluster(const proto::Cluster& cluster);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_CODEC_H_
