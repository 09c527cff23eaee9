#ifndef COMMON_NET_CLUSTER_TASK_METHODS_H_
#define COMMON_NET_CLUSTER_TASK_METHODS_H_

#include "absl/strings/string_view.h"

namespace muster {

// The method of proto/task.proto.
inline constexpr absl::string_view kEndTaskMethod = "/muster.Task/End";

// The method of proto/trace.proto.
inline constexpr absl::string_view kTraceTaskMethod = "/muster.Task/Trace";

// The methods of proto/job_control.proto.
inline constexpr absl::string_view kCheckpointJobMethod =
    "/muster.Job/Checkpoint";
inline constexpr absl::string_view kDrainTaskMethod = "/muster.Job/Drain";
inline constexpr absl::string_view kStopJobMethod = "/muster.Job/Stop";
inline constexpr absl::string_view kTraceJobMethod = "/muster.Job/Trace";

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_TASK_METHODS_H_
