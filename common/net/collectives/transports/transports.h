#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORTS_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORTS_H_

#include "absl/strings/string_view.h"
#include "common/net/collectives/transports/nccl_transport.h"
#include "common/net/collectives/transports/raw_socket_transport.h"
#include "common/net/collectives/transports/rpc_transport.h"
#include "common/net/collectives/transports/shared_memory_transport.h"
#include "common/net/collectives/transports/transport.h"
#include "common/net/collectives/transports/two_level_transport.h"

namespace muster {

inline constexpr TwoLevelTransport kSharedMemoryAndRawSockets(
    &kSharedMemoryTransport, &kRawSocketTransport);
inline constexpr TwoLevelTransport kSharedMemoryAndRpc(&kSharedMemoryTransport,
                                                       &kRpcTransport);
inline constexpr NcclTransport kNcclTransport(&kRpcTransport);

// All transports. A group uses the first that fits. If that one cannot connect,
// it uses the next that fits. The last fits every group.
inline constexpr const Transport* kTransports[] = {
    &kNcclTransport,      &kSharedMemoryTransport, &kSharedMemoryAndRawSockets,
    &kSharedMemoryAndRpc, &kRawSocketTransport,    &kRpcTransport,
};

// Returns the transport named `name`, or null if there is none.
const Transport* FindTransport(absl::string_view name);

// Returns a task's offer: its host, and the fields of every entry.
proto::TransportOffer OfferTransports(const TransportSettings& settings);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORTS_H_
