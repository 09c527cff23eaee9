#ifndef COMMON_NET_STATUS_TRACE_SERVICE_H_
#define COMMON_NET_STATUS_TRACE_SERVICE_H_

#include "common/net/rpc/service.h"

namespace muster {

namespace proto {
class TraceRequest;
class TraceResponse;
}  // namespace proto

// Maximum number of spans that a task reports. It reports the newest ones, with
// about 16 bytes each.
inline constexpr int kReportedSpansMax = 200'000;

// Adds the method by which the task that leads a job reads the spans of this
// process (proto/trace.proto).
void AddTraceMethod(Service* service);

// Returns the method's response to `request`.
proto::TraceResponse HandleTraceRequest(const proto::TraceRequest& request);

}  // namespace muster

#endif  // COMMON_NET_STATUS_TRACE_SERVICE_H_
