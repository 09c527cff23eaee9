#ifndef COMMON_NET_RPC_GRPC_SHUTDOWN_H_
#define COMMON_NET_RPC_GRPC_SHUTDOWN_H_

#include <grpcpp/server.h>

#include "absl/time/time.h"

namespace muster {

// Shuts `server` down. The server accepts no more calls. Calls in progress that
// do not end within `grace` are cancelled. Returns when all calls have ended.
// Call it once for a server.
//
// grpc::Server::Shutdown(deadline) does the same, but may measure the deadline
// by the wall clock. Setting that clock back would prolong the grace.
void ShutDownGrpcServer(grpc::Server& server, absl::Duration grace);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_SHUTDOWN_H_
