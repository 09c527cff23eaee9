#ifndef COMMON_NET_CLUSTER_HOST_FLAGS_H_
#define COMMON_NET_CLUSTER_HOST_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// The cluster as flags, an older alternative to TF_CONFIG: --job_name,
// --task_index, and a comma-separated list of hosts for each role.
struct HostFlags {
  std::string job_name;
  std::optional<int> task_index;
  std::string chief_hosts;
  std::string worker_hosts;
  std::string ps_hosts;

  // True if any flag is set. The flags then replace TF_CONFIG.
  bool any() const;
};

//   kInvalidArgument  as ParseTfConfig(), with messages that name the flags
absl::StatusOr<ClusterConfig> ParseHostFlags(const HostFlags& flags);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_HOST_FLAGS_H_
