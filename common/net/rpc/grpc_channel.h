#ifndef COMMON_NET_RPC_GRPC_CHANNEL_H_
#define COMMON_NET_RPC_GRPC_CHANNEL_H_

#include <memory>

#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"

namespace muster {

// As Network::Connect(), over gRPC.
std::unique_ptr<Channel> MakeGrpcChannel(const ChannelOptions& options);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_CHANNEL_H_
