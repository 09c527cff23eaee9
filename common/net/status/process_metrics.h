#ifndef COMMON_NET_STATUS_PROCESS_METRICS_H_
#define COMMON_NET_STATUS_PROCESS_METRICS_H_

#include "common/core/system/metrics.h"

namespace muster {

// Adds metrics for the memory, processor time, open files and start time of
// this process. Omits those whose source in /proc/self cannot be read.
void AddProcessMetrics(MetricSink* sink);

}  // namespace muster

#endif  // COMMON_NET_STATUS_PROCESS_METRICS_H_
