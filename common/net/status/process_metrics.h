#ifndef COMMON_NET_STATUS_PROCESS_METRICS_H_
#define COMMON_NET_STATUS_PROCESS_METRICS_H_

#include "common/core/system/metrics.h"

namespace muster {

// Adds the memory, processor time, open files and start time of this process,
// as /proc/self describes them. Adds nothing where that cannot be read.
void AddProcessMetrics(MetricSink* sink);

}  // namespace muster

#endif  // COMMON_NET_STATUS_PROCESS_METRICS_H_
