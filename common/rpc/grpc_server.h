#ifndef COMMON_RPC_GRPC_SERVER_H_
#define COMMON_RPC_GRPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/identity.h"
#include "common/rpc/network.h"
#include "common/rpc/service.h"

namespace muster {

// As Network::Listen(), over gRPC.
absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(
    const ServerOptions& options, const Service* service, const Door* door);

}  // namespace muster

#endif  // COMMON_RPC_GRPC_SERVER_H_
