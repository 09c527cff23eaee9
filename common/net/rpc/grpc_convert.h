#ifndef COMMON_NET_RPC_GRPC_CONVERT_H_
#define COMMON_NET_RPC_GRPC_CONVERT_H_

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/method_access.h"
#include "common/net/rpc/seen_calls.h"

// Converts between this room's types and gRPC's without copying bytes.

// The identity of the caller, in the metadata that a server reads before the
// call's messages.

namespace muster {

// Keeps the slices' owners until gRPC has released them.
grpc::ByteBuffer ToByteBuffer(std::vector<MessageSlice> slices);

// Returns no slices if `buffer` holds no message.
std::vector<MessageSlice> FromByteBuffer(const grpc::ByteBuffer& buffer);

// The payloads of a status are sent in the details.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// Returns the time `duration` from now as the deadline of a call. Uses the
// monotonic clock, so that setting the wall clock does not move the deadline.
gpr_timespec GrpcDeadline(absl::Duration duration);

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

#endif  // COMMON_NET_RPC_GRPC_CONVERT_H_
