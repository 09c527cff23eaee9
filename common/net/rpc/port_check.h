#ifndef COMMON_NET_RPC_PORT_CHECK_H_
#define COMMON_NET_RPC_PORT_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace muster {

// Checks that a server could listen on `address`, "host:port", by binding a
// socket to it for a moment. gRPC only logs why it could not. Port 0 is always
// free. An address that does not resolve passes: resolving is gRPC's task.
//
//   kUnavailable       another process listens there; names the port, the
//                      process where /proc shows it, and what to do
//   kInvalidArgument   the address is none of this machine, or the port needs
//                      privileges
absl::Status CheckPortIsFree(const std::string& address);

}  // namespace muster

#endif  // COMMON_NET_RPC_PORT_CHECK_H_
