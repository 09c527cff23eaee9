#include "worker/testing/reserved_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"

namespace muster {

// A bound socket that does not listen reserves the port. SO_REUSEADDR, which
// gRPC sets as well, lets servers bind to the same port and listen.
ReservedPort::ReservedPort() {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUSTER_CHECK(socket_ >= 0);
  const int on = 1;
  MUSTER_CHECK(setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ==
               0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  MUSTER_CHECK(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  MUSTER_CHECK(
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() { close(socket_); }

std::string ReservedPort::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

}  // namespace muster
