#ifndef COMMON_NET_RPC_GRPC_CONVERT_H_
#define COMMON_NET_RPC_GRPC_CONVERT_H_

#include <grpc/support/time.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/rpc/message.h"

// Converts between this room's types and gRPC's without copying bytes.
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

}  // namespace muster

#endif  // COMMON_NET_RPC_GRPC_CONVERT_H_
