#ifndef COMMON_NET_CLUSTER_CLUSTER_CONFIG_H_
#define COMMON_NET_CLUSTER_CLUSTER_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// What a process was told about the cluster and its own place in it. The
// default is a process that works alone.
struct ClusterConfig {
  ClusterSpec cluster;
  TaskId task = {TaskType::kChief, 0};

  // The only one there is.
  std::string rpc_layer = "grpc";

  // Where this was read: "TF_CONFIG", "--tf_config", ...; empty for none.
  std::string source;

  // No other task is named, so nobody is dialled and nobody waited for. An
  // evaluator always works alone.
  bool IsAlone() const;

  // Some task applies updates for the others.
  bool HasParameterServers() const { return cluster.Has(TaskType::kPs); }
};

// That `config` names a place in its own cluster.
//
//   kInvalidArgument   the role is not in the cluster, or has too few tasks. A
//                      chief need not be listed where there are parameter
//                      servers (nobody dials it), an evaluator never.
absl::Status CheckTaskIsInCluster(const ClusterConfig& config);

// What parameter-server training asks of a cluster.
//
//   kInvalidArgument   no ps, or no worker; a ps itself need know no worker
absl::Status CheckParameterServerCluster(const ClusterConfig& config);

// What synchronous training asks of a cluster.
//
//   kInvalidArgument   neither chief nor worker, or this task is a ps
absl::Status CheckMultiWorkerCluster(const ClusterConfig& config);

// Some lines for a person who asks what TF_CONFIG came to: this task, the kind
// of training, every task and its address. Ends with a newline.
std::string DescribeCluster(const ClusterConfig& config);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_CONFIG_H_
