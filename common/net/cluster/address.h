#ifndef COMMON_NET_CLUSTER_ADDRESS_H_
#define COMMON_NET_CLUSTER_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where a task listens, as its peers dial it.
struct HostPort {
  std::string host;  // A name or an IP address; IPv6 without brackets.
  int port = 0;

  // "h0:2222", "[fd00::1]:2222".
  std::string ToString() const;

  bool operator==(const HostPort&) const = default;
};

// Reads "host:port", "[ipv6]:port", and either with a scheme before it
// ("grpc://h0:2222"), which is dropped.
//
//   kInvalidArgument   no host, no port, a port outside 1 to 65535, IPv6
//                      without brackets, blanks or a path
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// Reaches this machine only: localhost, 127.0.0.0/8, ::1.
bool IsLoopbackHost(absl::string_view host);

// Fit for listening on, not for dialling: 0.0.0.0, ::.
bool IsWildcardHost(absl::string_view host);

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_ADDRESS_H_
