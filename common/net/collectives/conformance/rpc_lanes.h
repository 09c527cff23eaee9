#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_RPC_LANES_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_RPC_LANES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/net/collectives/conformance/message_backends.h"

namespace muster {

// Lanes over gRPC between servers of this process, one for each rank. The
// servers live as long as any of the lanes.
absl::StatusOr<LaneMesh> MakeRpcLanes(int size, uint64_t generation);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_RPC_LANES_H_
