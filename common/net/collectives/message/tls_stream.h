#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TLS_STREAM_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TLS_STREAM_H_

#include <cstddef>
#include <memory>
#include <string>

#include "common/net/collectives/message/socket_stream.h"

namespace muster {

enum class TlsRole { kClient, kServer };

struct TlsStreamOptions {
  TlsRole role = TlsRole::kClient;
  // The secret that both ends share, with at least 128 bits of entropy. It is
  // used for one listener and never sent.
  std::string key;
  // After so many bytes the sender changes its key. AES-GCM is safe for about
  // 400 GiB under one key (RFC 8446, 5.5).
  size_t bytes_per_key = size_t{64} << 30;
};

// Returns a stream that uses TLS 1.3 over `fd`, a connected non-blocking
// socket, of which it takes ownership. Both ends prove that they have the key
// (RFC 8446, 2.2: an external pre-shared key). The keys of the connection are
// also derived from a Diffie-Hellman exchange, so `key` alone cannot decrypt a
// recorded connection later.
//
// Handshake() returns kPermissionDenied if the peer has another key or none,
// does not use TLS, or uses an older version. The message includes OpenSSL's
// reason.
std::unique_ptr<SocketStream> MakeTlsStream(int fd, TlsStreamOptions options);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TLS_STREAM_H_
