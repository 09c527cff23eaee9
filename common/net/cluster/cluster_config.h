#ifndef COMMON_NET_CLUSTER_CLUSTER_CONFIG_H_
#define COMMON_NET_CLUSTER_CLUSTER_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// The cluster and this process's task in it. The default is a process that runs
// alone.
struct ClusterConfig {
  ClusterSpec cluster;
  TaskId task = {TaskType::kChief, 0};

  // The only supported value.
  std::string rpc_layer = "grpc";

  // Where the configuration was read: "TF_CONFIG", "--tf_config", ...; empty if
  // there is none.
  std::string source;

  // True if there are no other tasks to connect to or wait for. An evaluator
  // always runs alone.
  bool IsAlone() const;

  // True if the cluster has parameter servers.
  bool HasParameterServers() const { return cluster.Has(TaskType::kPs); }
};

// Checks that the task of `config` is in its cluster.
//   kInvalidArgument  the role is not in the cluster, or has too few tasks. A
//                     chief need not be listed in a cluster with parameter
//                     servers, because no task connects to it. An evaluator
//                     need never be listed.
absl::Status CheckTaskIsInCluster(const ClusterConfig& config);

// Checks the cluster for parameter-server training.
//   kInvalidArgument  there is no ps or no worker; a ps itself need not list
//                     workers
absl::Status CheckParameterServerCluster(const ClusterConfig& config);

// Checks the cluster for synchronous training.
//   kInvalidArgument  there is neither chief nor worker, or this task is a ps
absl::Status CheckMultiWorkerCluster(const ClusterConfig& config);

// Describes the configuration for users in several lines: this task, the kind
// of training, every task and its address. Ends with a newline.
std::string DescribeCluster(const ClusterConfig& config);

namespace internal {

// Returns kInvalidArgument with the concatenated parts as its message.
template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace internal
}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_CONFIG_H_
