#ifndef COMMON_NET_RPC_REFUSED_REQUESTS_H_
#define COMMON_NET_RPC_REFUSED_REQUESTS_H_

#include "absl/strings/string_view.h"

namespace muster {

// Counts a request that was refused because of its sender, in the metric
// muster_requests_refused_total with the label `cause`. Thread-safe.
void CountRefusedRequest(absl::string_view cause);

}  // namespace muster

#endif  // COMMON_NET_RPC_REFUSED_REQUESTS_H_
