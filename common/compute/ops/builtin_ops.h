#ifndef COMMON_COMPUTE_OPS_BUILTIN_OPS_H_
#define COMMON_COMPUTE_OPS_BUILTIN_OPS_H_

#include "common/compute/graph/op_registry.h"

namespace muster {

// Every op there is: what graphs are traced, verified and differentiated with.
// Lives as long as the process.
const OpRegistry& BuiltinOps();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_BUILTIN_OPS_H_
