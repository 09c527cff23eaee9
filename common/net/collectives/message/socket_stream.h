#ifndef COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_STREAM_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// A byte stream over a connected, non-blocking socket: in plaintext or
// encrypted (tls_stream.h). Owns the socket and closes it.
//
// Every error is final:
//   kUnavailable       the peer is gone, or the connection is broken
//   kPermissionDenied  the peer did not authenticate itself, or does not accept
//                      this end
// Not thread-safe.
class SocketStream {
 public:
  virtual ~SocketStream() = default;

  // Descriptor for poll().
  virtual int fd() const = 0;

  // Continues to authenticate and to exchange keys. Returns true when the
  // handshake is finished; otherwise the caller calls again when the socket is
  // readable. Must be finished before the first Write() and Read().
  virtual absl::StatusOr<bool> Handshake() = 0;

  // Sends some of the bytes of `parts` and returns their number. 0 means that
  // the socket accepts no more until it is writable. The next call must then
  // begin with the same bytes.
  virtual absl::StatusOr<size_t> Write(absl::Span<const iovec> parts) = 0;

  // Receives into `parts` and returns the number of bytes. If they do not fill
  // `parts`, no more can be read until the socket is readable.
  virtual absl::StatusOr<size_t> Read(absl::Span<const iovec> parts) = 0;

  // Signals to the peer that no more bytes follow. Reading remains possible.
  virtual void FinishWriting() = 0;
};

// Takes ownership of `fd`, a connected non-blocking socket.
std::unique_ptr<SocketStream> MakePlaintextStream(int fd);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_STREAM_H_
