#ifndef COMMON_NET_RPC_GRPC_SHUTDOWN_H_
#define COMMON_NET_RPC_GRPC_SHUTDOWN_H_

#include <grpcpp/server.h>

#include "absl/time/time.h"

namespace muster {

// Shuts `server` down: it takes no more calls, and the calls in progress and
// the connections get `grace` to end. Then they are cancelled. Returns when all
// calls have ended. Called once for a server.
//
// grpc::Server::Shutdown(deadline) does the same, but may wait for the deadline
// by the wall clock: a clock that is set back in the meantime prolongs the
// grace.
void ShutDownGrpcServer(grpc::Server& server, absl::Duration grace);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_SHUTDOWN_H_
