#ifndef COMMON_NET_CLUSTER_ENVIRONMENT_LOOKUP_H_
#define COMMON_NET_CLUSTER_ENVIRONMENT_LOOKUP_H_

#include "absl/functional/function_ref.h"

namespace muster {

// Returns the value of an environment variable, or null if it is not set:
// std::getenv, or a stand-in for tests. The value is borrowed until the
// environment changes.
using EnvironmentLookup = absl::FunctionRef<const char*(const char* name)>;

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_ENVIRONMENT_LOOKUP_H_
