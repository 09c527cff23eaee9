#ifndef COMMON_NET_RPC_GRPC_IDENTITY_H_
#define COMMON_NET_RPC_GRPC_IDENTITY_H_

#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/seen_calls.h"
#include "common/net/rpc/spiffe_id.h"

// The identity of the caller, in the metadata that a server reads before the
// call's messages.
namespace muster {

namespace proto {
class RequestIdentity;
}  // namespace proto

// Adds `identity` to the metadata of a call.
void AddIdentity(const proto::RequestIdentity& identity,
                 grpc::ClientContext* context);

// Adds `id` to the metadata of a call.
void AddCallId(const CallId& id, grpc::ClientContext* context);

// Adds `secret` to the metadata of a call: the secret that the server sent to
// this task for its calls on local connections (LocalConnections).
void AddLocalSecret(const std::string& secret, grpc::ClientContext* context);

// Returns the identity that the caller sent; empty if it sent none.
proto::RequestIdentity IdentityOf(
    const grpc::GenericCallbackServerContext& context);

// Returns the id of the call; zeros if the caller does not number its calls.
CallId CallIdOf(const grpc::GenericCallbackServerContext& context);

// Returns the secret in the call's metadata; empty if there is none.
absl::string_view LocalSecretOf(
    const grpc::GenericCallbackServerContext& context);

// Tells the caller that the call was refused because it had arrived before.
void MarkRepeated(grpc::GenericCallbackServerContext* context);
// True if the server called MarkRepeated() for this call. Valid after the end
// of the call.
bool WasRepeated(const grpc::ClientContext& context);

// True if the client of the connection has shown a certificate.
bool IsCertified(const grpc::GenericCallbackServerContext& context);

// Returns the task that the certificate of the connection's client names.
//   kUnauthenticated  the connection has no certificate that names one task
absl::StatusOr<SpiffeId> CertifiedCaller(
    const grpc::GenericCallbackServerContext& context);

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_IDENTITY_H_
