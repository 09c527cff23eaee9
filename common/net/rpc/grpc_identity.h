#ifndef COMMON_NET_RPC_GRPC_IDENTITY_H_
#define COMMON_NET_RPC_GRPC_IDENTITY_H_

#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/seen_calls.h"
#include "common/net/rpc/spiffe_id.h"

// The caller, as a server sees it before it reads a message.
namespace muster {

namespace proto {
class RequestIdentity;
}  // namespace proto

// Sends `identity` ahead of the call's messages, among its metadata.
void AddIdentity(const proto::RequestIdentity& identity,
                 grpc::ClientContext* context);

// Sends `id` in the same way.
void AddCallId(const CallId& id, grpc::ClientContext* context);

// Sends `secret` in the same way: what the server told this task for its calls
// on local connections (LocalConnections).
void AddLocalSecret(const std::string& secret, grpc::ClientContext* context);

// The identity that the caller sent; empty if it sent none.
proto::RequestIdentity IdentityOf(
    const grpc::GenericCallbackServerContext& context);

// The number of the call; zeros if the caller does not number its calls.
CallId CallIdOf(const grpc::GenericCallbackServerContext& context);

// The secret that the call shows; empty if it shows none.
absl::string_view LocalSecretOf(
    const grpc::GenericCallbackServerContext& context);

// Tells the caller that the call was refused because it had arrived before.
void MarkRepeated(grpc::GenericCallbackServerContext* context);
// True if the server did so. After the end of the call.
bool WasRepeated(const grpc::ClientContext& context);

// True if the connection was made with a certificate.
bool IsCertified(const grpc::GenericCallbackServerContext& context);

// The task in the certificate with which the connection was made.
//   kUnauthenticated  the connection has no certificate that names one task
absl::StatusOr<SpiffeId> CertifiedCaller(
    const grpc::GenericCallbackServerContext& context);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_IDENTITY_H_
