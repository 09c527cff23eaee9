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

// How two processes of one host and user, who can already call each other over
// mutual TLS, get connected Unix sockets:
//
//   client                                      server
//   LocalOffer::Make()
//             --- endpoint, token (over TLS) -->
//                                               ConnectTo() the endpoint, shows
//                                               the token on each socket
//             <-- answer (over TLS) ------------
//   LocalOffer::Take()
//
// No thread waits: when the answer arrives, the sockets are connected and the
// tokens are in their buffers.
namespace muster {

// The method of proto/local_connection.proto. Only servers with TLS have it.
inline constexpr absl::string_view kOpenLocalConnectionMethod =
    "/muster.Task/OpenLocalConnection";

// One end of a local connection.
struct LocalSockets {
  FileDescriptor calls;
  // Carries nothing. It ends when the server shuts down or its process ends,
  // so the client can tell whether `calls`, which gRPC owns, still leads
  // anywhere.
  FileDescriptor tether;
};

// Returns whether the other end of a tether is gone. Does not wait.
bool HasEnded(const FileDescriptor& tether);

// The client's half.
class LocalOffer {
 public:
  //   as LocalEndpoint::Listen()
  static absl::StatusOr<LocalOffer> Make();

  // The request for the server, sent over mutual TLS.
  const proto::OpenLocalConnectionRequest& request() const { return request_; }

  // Takes the sockets that the server has connected. Drops connections of other
  // users and those that do not show the token.
  //   kFailedPrecondition  the server has not connected
  absl::StatusOr<LocalSockets> Take();

 private:
  explicit LocalOffer(std::unique_ptr<LocalEndpoint> endpoint);

  absl::StatusOr<FileDescriptor> TakeOne();

  std::unique_ptr<LocalEndpoint> endpoint_;
  proto::OpenLocalConnectionRequest request_;
};

// The server's half: connects to the offer's endpoint and shows its token.
//   kFailedPrecondition  the endpoint is on another host, its process runs as
//                        another user, or no process listens there
//   kInvalidArgument     the offer has no address of an endpoint or no token
absl::StatusOr<LocalSockets> ConnectTo(
    const proto::OpenLocalConnectionRequest& offer);

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_HANDSHAKE_H_
