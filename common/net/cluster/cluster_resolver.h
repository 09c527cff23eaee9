#ifndef COMMON_NET_CLUSTER_CLUSTER_RESOLVER_H_
#define COMMON_NET_CLUSTER_CLUSTER_RESOLVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/environment_lookup.h"
#include "common/net/cluster/host_flags.h"

namespace muster {

// The sources of a task's cluster, apart from its environment.
struct ClusterSources {
  HostFlags hosts;
  std::string tf_config;  // --tf_config

  // --cluster_resolver: "auto", "tf_config", "slurm" or "kubernetes".
  std::string resolver = "auto";
  std::string cluster_tasks;  // --cluster_tasks, "chief=1,ps=1,worker=2"
  int port_base = 8888;       // 0: a default that depends on the engine.
  std::string kubernetes_service;
  std::string host_name;  // The name of this machine.
};

// Returns the cluster and this process's task, from the first source that
// applies:
//
//   1. the host flags, if any is set
//   2. --tf_config
//   3. the resolver that --cluster_resolver names; for "auto"
//      a. TF_CONFIG, if it is set; blank means a process that runs alone
//      b. Slurm, in a process that srun has started
//      c. Kubernetes, in a pod with --cluster_tasks
//      d. a process that runs alone
//
//   kInvalidArgument  an unknown resolver, a port outside 1 to 65535, or
//                     --cluster_tasks that no resolver uses; or the resolver
//                     fails with this code
absl::StatusOr<ClusterConfig> ResolveCluster(const ClusterSources& sources,
                                             EnvironmentLookup environment);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_CLUSTER_RESOLVER_H_
