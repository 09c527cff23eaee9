#ifndef COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_
#define COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_

#include <string>

#include "absl/status/status.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// Returns the differences between two tasks' views of the cluster in one line
// with roles and addresses; empty if the tasks can work together. For a role
// that either side gives as a map, compares only the tasks that both list. Does
// not compare evaluators, or a chief that only one side lists in a cluster with
// parameter servers.
std::string DescribeDifferences(const ClusterSpec& there,
                                const ClusterSpec& here);

// Checks that the tasks can work together.
//   kFailedPrecondition  "worker 0 and this task disagree about the cluster: ps
//                        is ["h2:2222"] there and ["h2:2223"] here; ..."
absl::Status CheckClustersAgree(TaskId peer, const ClusterSpec& there,
                                const ClusterSpec& here);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_
