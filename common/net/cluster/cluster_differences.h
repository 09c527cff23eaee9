#ifndef COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_
#define COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_

#include <string>

#include "absl/status/status.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// What two tasks think differently about their cluster, in one line that names
// roles and addresses; empty when they can work together. Of a role that either
// side gives as a map only tasks named by both are compared. An evaluator is
// nobody's business, and so is a chief that one side does not list where
// parameter servers do the meeting.
std::string DescribeDifferences(const ClusterSpec& there,
                                const ClusterSpec& here);

// The answer to a peer at the door.
//
//   kFailedPrecondition   "worker 0 and this task disagree about the cluster:
//                         ps is ["h2:2222"] there and ["h2:2223"] here; ..."
absl::Status CheckClustersAgree(TaskId peer, const ClusterSpec& there,
                                const ClusterSpec& here);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_DIFFERENCES_H_
