#ifndef COMMON_NET_RPC_LOCAL_HANDSHAKE_H_
#define COMMON_NET_RPC_LOCAL_HANDSHAKE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/rpc/local_endpoint.h"
#include "proto/local_connection.pb.h"

// A handshake that gives two processes connected Unix sockets. Both run on the
// same host as the same user, and can call each other over mutual TLS:
//
//   client                                      server
//   LocalOffer::Make()
//             --- endpoint, token (over TLS) -->
//                                               ConnectTo() the endpoint, send
//                                               the token on each socket
//             <-- response (over TLS) ----------
//   LocalOffer::Take()
//
// No thread waits: when the response arrives, the sockets are connected and the
// tokens are in their buffers.
namespace muster {

// The method of proto/local_connection.proto. Only servers with TLS have it.
inline constexpr absl::string_view kOpenLocalConnectionMethod =
    "/muster.Task/OpenLocalConnection";

// One end of a local connection.
struct LocalSockets {
  FileDescriptor calls;
  // Carries no data. It is closed when the server shuts down or its process
  // ends. The client uses it to find out whether `calls`, which gRPC owns, is
  // still connected to the server.
  FileDescriptor tether;
};

// Returns true if the other end of a tether is closed. Does not block.
bool HasEnded(const FileDescriptor& tether);

// The client's part of the handshake.
class LocalOffer {
 public:
  // Fails as LocalEndpoint::Listen() does.
  static absl::StatusOr<LocalOffer> Make();

  // The request for the server, sent over mutual TLS.
  const proto::OpenLocalConnectionRequest& request() const { return request_; }

  // Accepts the sockets that the server has connected. Closes connections of
  // other users and those that do not send the token.
  //   kFailedPrecondition  the server has not connected
  absl::StatusOr<LocalSockets> Take();

 private:
  explicit LocalOffer(std::unique_ptr<LocalEndpoint> endpoint);

  absl::StatusOr<FileDescriptor> TakeOne();

  std::unique_ptr<LocalEndpoint> endpoint_;
  proto::OpenLocalConnectionRequest request_;
};

// The server's part of the handshake: connects to the offer's endpoint and
// sends the offer's token.
//   kFailedPrecondition  the endpoint is on another host, its process runs as
//                        another user, or no process listens there
//   kInvalidArgument     the offer has no address of an endpoint or no token
absl::StatusOr<LocalSockets> ConnectTo(
    const proto::OpenLocalConnectionRequest& offer);

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_HANDSHAKE_H_
