#ifndef COMMON_NET_CLUSTER_KUBERNETES_CLUSTER_H_
#define COMMON_NET_CLUSTER_KUBERNETES_CLUSTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/environment_lookup.h"
#include "common/net/cluster/role_counts.h"

namespace muster {

// The options of a pod beside its host name.
struct KubernetesOptions {
  RoleCounts roles;       // Not empty: a pod cannot count the others.
  std::string service;    // The headless Service. Empty: NAME of the host name.
  int port = 8888;        // Of every task.
  std::string host_name;  // Of this pod.
};

// True in a container of a Kubernetes pod.
bool IsInKubernetesPod(EnvironmentLookup environment);

// Derives the cluster and this pod's task from its host name, NAME-ROLE-INDEX,
// which a StatefulSet or an Indexed Job called NAME-ROLE gives its pods. Where
// the pod sets its host name itself, as NAME-ROLE, an Indexed Job still gives
// the index in JOB_COMPLETION_INDEX. A JobSet called NAME makes the host name
// NAME-ROLE-0-INDEX of a replicated job called ROLE.
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
//                     JOB_COMPLETION_INDEX contradicts it, or this task is not
//                     among `roles`; the message names the variable or flag,
//                     its value and what was expected
absl::StatusOr<ClusterConfig> ResolveKubernetesCluster(
    const KubernetesOptions& options, EnvironmentLookup environment);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_KUBERNETES_CLUSTER_H_
