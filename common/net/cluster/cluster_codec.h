#ifndef COMMON_NET_CLUSTER_CLUSTER_CODEC_H_
#define COMMON_NET_CLUSTER_CLUSTER_CODEC_H_

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "proto/cluster.pb.h"

namespace muster {

proto::Task EncodeTask(TaskId task);

//   kInvalidArgument   an unknown role, an index below zero
absl::StatusOr<TaskId> DecodeTask(const proto::Task& task);

proto::Cluster EncodeCluster(const ClusterSpec& cluster);

//   kInvalidArgument   an unknown role, a role twice, and all that
//                      ClusterSpec::Create() refuses
absl::StatusOr<ClusterSpec> DecodeCluster(const proto::Cluster& cluster);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_CODEC_H_
