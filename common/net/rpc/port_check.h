#ifndef COMMON_NET_RPC_PORT_CHECK_H_
#define COMMON_NET_RPC_PORT_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace muster {

// Checks that a server could listen on `address` ("host:port"), by binding a
// socket to it for a moment. gRPC itself only logs why it cannot listen. Port 0
// is always free. Returns OK for an address that does not resolve, because gRPC
// resolves it again and reports the error.
//
//   kUnavailable       another process listens there; names the port, the
//                      process if /proc shows it, and what to do
//   kInvalidArgument   the address does not belong to this machine, or the port
//                      needs privileges
absl::Status CheckPortIsFree(const std::string& address);

}  // namespace muster

#endif  // COMMON_NET_RPC_PORT_CHECK_H_
