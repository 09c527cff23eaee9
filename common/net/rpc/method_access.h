#ifndef COMMON_NET_RPC_METHOD_ACCESS_H_
#define COMMON_NET_RPC_METHOD_ACCESS_H_

#include "absl/strings/string_view.h"

namespace muster {

// Returns whether a caller of `role` ("chief", "worker", "ps", "evaluator" or
// "operator") may call `method` ("/muster.ParameterServer/Exchange"). One table
// lists which roles may call each method. A role or method that is not listed
// is refused.
//
// Servers with TLS apply it to the role in the caller's certificate. Servers
// without TLS do not: without a certificate, a caller can claim any role.
bool MayCall(absl::string_view role, absl::string_view method);

}  // namespace muster

#endif  // COMMON_NET_RPC_METHOD_ACCESS_H_
