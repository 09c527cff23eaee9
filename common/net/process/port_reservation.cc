#include "common/net/process/port_reservation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Returns a socket that is bound to the loopback address of `family`, or -1 and
// errno. If `*port` is 0, binds any free port and sets `*port` to it.
int BindLoopback(int family, int* port) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage storage = {};
  socklen_t length = 0;
  if (family == AF_INET) {
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address->sin_port = htons(static_cast<uint16_t>(*port));
    length = sizeof(*address);
  } else {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    address->sin6_port = htons(static_cast<uint16_t>(*port));
    length = sizeof(*address);
  }
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  if (bind(fd, generic, length) != 0 ||
      getsockname(fd, generic, &length) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  // IPv4 and IPv6 addresses have the port at the same offset.
  *port = ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PortReservation>> PortReservation::Create() {
  constexpr int kAttemptsMax = 64;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    int port = 0;
    const int fd_ipv4 = BindLoopback(AF_INET, &port);
    if (fd_ipv4 < 0) {
      return absl::ErrnoToStatus(errno, "cannot reserve a port");
    }
    const int fd_ipv6 = BindLoopback(AF_INET6, &port);
    // Without IPv6, no unrelated process can listen on the IPv6 address.
    if (fd_ipv6 >= 0 || errno != EADDRINUSE) {
      return std::unique_ptr<PortReservation>(
          new PortReservation(fd_ipv4, fd_ipv6, port));
    }
    close(fd_ipv4);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot reserve a port: ", kAttemptsMax,
                   " were taken on one of the two loopback addresses"));
}

PortReservation::~PortReservation() {
  close(fd_ipv4_);
  if (fd_ipv6_ >= 0) close(fd_ipv6_);
}

}  // namespace muster
