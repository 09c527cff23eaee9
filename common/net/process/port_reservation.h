#ifndef COMMON_NET_PROCESS_PORT_RESERVATION_H_
#define COMMON_NET_PROCESS_PORT_RESERVATION_H_

#include <memory>

#include "absl/status/statusor.h"

namespace muster {

// A port of this machine that no process is given while this object lives,
// except a server that asks for it by number.
//
// The socket is bound and never listens. The kernel hands out no port that is
// bound, and lets a second socket have this one because both say SO_REUSEADDR
// and the first is not listening. So a task finds its port free when it starts,
// and again when it is restarted.
//
// Taken on both loopback addresses: a client of "localhost" may try ::1 first,
// and must not reach an unrelated process there.
class PortReservation {
 public:
  //   kResourceExhausted   no port or file is left
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
