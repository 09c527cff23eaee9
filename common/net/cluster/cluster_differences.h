#ifndef COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_
#define COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_

#include <string>

#include "absl/status/status.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// Returns the differences between two tasks' views of their cluster in one line
// that names roles and addresses; empty when the tasks can work together. Of a
// role that either side gives as a map, only the tasks that both name are
// compared. Evaluators are not compared, and neither is a chief that one side
// does not list in a cluster with parameter servers.
std::string DescribeDifferences(const ClusterSpec& there,
                                const ClusterSpec& here);

// Returns OK when the tasks can work together.
//
//   kFailedPrecondition   "worker 0 and this task disagree about the cluster:
//                         ps is ["h2:2222"] there and ["h2:2223"] here; ..."
absl::Status CheckClustersAgree(TaskId peer, const ClusterSpec& there,
                                const ClusterSpec& here);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_
