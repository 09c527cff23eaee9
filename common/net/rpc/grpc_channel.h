#ifndef COMMON_NET_RPC_GRPC_CHANNEL_H_
#define COMMON_NET_RPC_GRPC_CHANNEL_H_

#include <memory>

#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// Network::Connect() over gRPC. `tls` is borrowed for the call, and null for
// plaintext. Plaintext has no local connections.
std::unique_ptr<Channel> MakeGrpcChannel(const ChannelOptions& options,
                                         const TlsContext* tls,
                                         bool uses_local_connections);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_CHANNEL_H_
