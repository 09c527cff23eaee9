#ifndef COMMON_NET_RPC_GRPC_SERVER_H_
#define COMMON_NET_RPC_GRPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// Network::Listen() over gRPC. `tls` is borrowed and outlives the server; it is
// null for plaintext. Plaintext has no local connections.
absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(
    const ServerOptions& options, const Service* service,
    AdmissionCheck* admission_check, const TlsContext* tls,
    bool opens_local_connections);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_SERVER_H_
