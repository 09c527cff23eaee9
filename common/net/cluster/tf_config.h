#ifndef COMMON_NET_CLUSTER_TF_CONFIG_H_
#define COMMON_NET_CLUSTER_TF_CONFIG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// Reads the JSON of TF_CONFIG, as TensorFlow, Kubeflow and the many scripts
// that write one by hand understand it:
//
//   {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"],
//                "ps": ["h3:2222"]},
//    "task": {"type": "worker", "index": 1}}
//
// A role may be a map ("worker": {"1": "h2:2222"}), the index a string, an
// address may begin with a scheme, "master" is the chief, and keys of others
// ("environment", "job", ...) are ignored. A blank text is a process that works
// alone.
//
// Every error begins with `source` ("TF_CONFIG"), names the entry, what came
// and how to mend it.
//
//   kInvalidArgument   anything that would make the cluster wait for ever or
//                      train something else than was meant
absl::StatusOr<ClusterConfig> ParseTfConfig(absl::string_view text,
                                            absl::string_view source);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_TF_CONFIG_H_
