#ifndef COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_STREAM_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// A byte stream over a connected socket that does not block: in plaintext, or
// encrypted (tls_stream.h). Owns the socket and closes it.
//
// Every error is final:
//   kUnavailable       the other end is gone, or the connection is broken
//   kPermissionDenied  the other end did not authenticate itself, or does not
//                      accept this end
// Not thread-safe.
class SocketStream {
 public:
  virtual ~SocketStream() = default;

  // For poll().
  virtual int fd() const = 0;

  // Continues to authenticate and to exchange keys. Returns whether this is
  // finished; if not, it continues when the socket is readable. Comes before
  // the first Write() and Read().
  virtual absl::StatusOr<bool> Handshake() = 0;

  // Sends some of the bytes of `parts`, and returns how many. 0: the socket
  // takes no more until it is writable; the next call must begin with the same
  // bytes.
  virtual absl::StatusOr<size_t> Write(absl::Span<const iovec> parts) = 0;

  // Receives into `parts`, and returns how many bytes. When they are fewer
  // than fit, nothing more can be read until the socket is readable.
  virtual absl::StatusOr<size_t> Read(absl::Span<const iovec> parts) = 0;

  // Tells the other end that nothing follows. Reading remains possible.
  virtual void FinishWriting() = 0;
};

// Takes over `fd`, a connected socket that does not block.
std::unique_ptr<SocketStream> MakePlaintextStream(int fd);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_STREAM_H_
