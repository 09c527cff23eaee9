#ifndef COMMON_NET_CLUSTER_TF_CONFIG_H_
#define COMMON_NET_CLUSTER_TF_CONFIG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// Parses TF_CONFIG as TensorFlow, Kubeflow and common scripts write it:
//
//   {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"],
//                "ps": ["h3:2222"]},
//    "task": {"type": "worker", "index": 1}}
//
// A role may be a map ("worker": {"1": "h2:2222"}), the index may be a string,
// an address may have a scheme, "master" means chief, and unrelated keys
// ("environment", "job", ...) are ignored. A blank text means a process that
// runs alone.
//
// Every error begins with `source` ("TF_CONFIG") and names the entry, what was
// found and how to fix it.
//   kInvalidArgument  anything that would make the cluster wait indefinitely or
//                     train something other than intended
absl::StatusOr<ClusterConfig> ParseTfConfig(absl::string_view text,
                                            absl::string_view source);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_TF_CONFIG_H_
