#ifndef COMMON_NET_PROCESS_PORT_RESERVATION_H_
#define COMMON_NET_PROCESS_PORT_RESERVATION_H_

#include <memory>

#include "absl/status/statusor.h"

namespace muster {

// Reserves a port of this machine. As long as this object exists, the kernel
// assigns the port to no other socket, except one that binds it by number.
//
// The reserving socket is bound but never listens. The kernel does not assign
// ports that are bound. It still allows a second socket to bind this port,
// because both sockets set SO_REUSEADDR and the first one does not listen. So a
// task can listen on its port when it starts, and again when it is restarted.
//
// Reserves the port on both loopback addresses: a client of "localhost" may try
// ::1 first, and must not reach an unrelated process there.
class PortReservation {
 public:
  //   kResourceExhausted   no port or file descriptor is free
  static absl::StatusOr<std::unique_ptr<PortReservation>> Create();

  ~PortReservation();

  PortReservation(const PortReservation&) = delete;
  PortReservation& operator=(const PortReservation&) = delete;

  int port() const { return port_; }

 private:
  PortReservation(int fd_ipv4, int fd_ipv6, int port)
      : fd_ipv4_(fd_ipv4), fd_ipv6_(fd_ipv6), port_(port) {}

  const int fd_ipv4_;
  const int fd_ipv6_;  // -1 without IPv6.
  const int port_;
};

}  // namespace muster

#endif  // COMMON_NET_PROCESS_PORT_RESERVATION_H_
