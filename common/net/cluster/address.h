#ifndef COMMON_NET_CLUSTER_ADDRESS_H_
#define COMMON_NET_CLUSTER_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr int kPortMax = 65535;

// The address of a task for its peers.
struct HostPort {
  std::string host;  // A name or an IP address; IPv6 without brackets.
  int port = 0;

  // Returns "h0:2222" or "[fd00::1]:2222".
  std::string ToString() const;

  bool operator==(const HostPort&) const = default;
};

// Parses "host:port" and "[ipv6]:port". A scheme such as "grpc://" is removed.
//   kInvalidArgument  no host, no port, a port outside 1 to 65535, IPv6 without
//                     brackets, blanks, or a path
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// True for hosts that reach only this machine: localhost, 127.0.0.0/8, ::1.
bool IsLoopbackHost(absl::string_view host);

// True for hosts to listen on but not to connect to: 0.0.0.0, ::.
bool IsWildcardHost(absl::string_view host);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_ADDRESS_H_
