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
  // A secret of both ends, with at least 128 bits of entropy, that no one else
  // has. Used for one listener, and never sent.
  std::string key;
  // After so many bytes the sender changes its key. AES-GCM is safe for about
  // 400 GiB under one key (RFC 8446, 5.5).
  size_t bytes_per_key = size_t{64} << 30;
};

// Speaks TLS 1.3 over `fd`, a connected socket that does not block, and takes
// it over. Both ends prove that they have the key (RFC 8446, 2.2: an external
// pre-shared key). The keys of the connection also come from a Diffie-Hellman
// exchange, so that `key` does not decrypt a recording later.
//
// Handshake() returns kPermissionDenied if the other end has another key or
// none, speaks no TLS, or an older version; the message says which, as far as
// OpenSSL knows.
std::unique_ptr<SocketStream> MakeTlsStream(int fd, TlsStreamOptions options);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TLS_STREAM_H_
