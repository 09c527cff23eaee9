#ifndef COMMON_NET_RPC_METHOD_ACCESS_H_
#define COMMON_NET_RPC_METHOD_ACCESS_H_

#include "absl/strings/string_view.h"

namespace muster {

// Returns whether a caller of `role` ("chief", "worker", "ps", "evaluator" or
// "operator") may call `method` ("/muster.ParameterServer/Exchange"). One table
// lists which role may call what; a role or method that it does not list is
// refused.
//
// Applied to the role in the caller's certificate, so only where a server has
// TLS: over plaintext the role would be the caller's own claim.
bool MayCall(absl::string_view role, absl::string_view method);

}  // namespace muster

#endif  // COMMON_NET_RPC_METHOD_ACCESS_H_
