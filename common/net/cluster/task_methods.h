#ifndef COMMON_NET_CLUSTER_TASK_METHODS_H_
#define COMMON_NET_CLUSTER_TASK_METHODS_H_

#include "absl/strings/string_view.h"

namespace muster {

// The method of proto/task.proto.
inline constexpr absl::string_view kEndTaskMethod = "/muster.Task/End";

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_TASK_METHODS_H_
