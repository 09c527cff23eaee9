#ifndef COMMON_NET_CLUSTER_KUBERNETES_CLUSTER_H_
#define COMMON_NET_CLUSTER_KUBERNETES_CLUSTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/environment_lookup.h"
#include "common/net/cluster/role_counts.h"

namespace muster {

// The options of a pod.
struct KubernetesOptions {
  // The roles of the cluster. Required, because a pod cannot count other pods.
  RoleCounts roles;
  // The headless Service; if empty, NAME of the host name.
  std::string service;
  int port = 8888;        // The port of every task.
  std::string host_name;  // The host name of this pod.
};

// True in a container of a Kubernetes pod.
bool IsInKubernetesPod(EnvironmentLookup environment);

// Derives the cluster and this pod's task from its host name, NAME-ROLE-INDEX,
// which a StatefulSet or an Indexed Job called NAME-ROLE gives its pods. If the
// pod specification sets the host name to NAME-ROLE, the index is that of the
// Indexed Job in JOB_COMPLETION_INDEX. In a JobSet called NAME, pods of a
// replicated job called ROLE have the host name NAME-ROLE-0-INDEX.
//
//   host name demo-worker-1 and chief=1,ps=1,worker=2:
//     chief     demo-chief-0.demo:8888
//     ps 0      demo-ps-0.demo:8888
//     worker 0  demo-worker-0.demo:8888
//     worker 1  demo-worker-1.demo:8888   <- this task
//
// The names are those that the headless Service `service` gives the pods. It
// needs publishNotReadyAddresses, since tasks wait for each other before they
// are ready.
//
//   kInvalidArgument  there are no roles, the host name has no role or index,
//                     JOB_COMPLETION_INDEX contradicts the host name, or this
//                     task is not among `roles`; the message names the variable
//                     or flag, its value and what was expected
absl::StatusOr<ClusterConfig> ResolveKubernetesCluster(
    const KubernetesOptions& options, EnvironmentLookup environment);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_KUBERNETES_CLUSTER_H_
