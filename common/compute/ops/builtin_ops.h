#ifndef COMMON_COMPUTE_OPS_BUILTIN_OPS_H_
#define COMMON_COMPUTE_OPS_BUILTIN_OPS_H_

#include "common/compute/graph/op_registry.h"

namespace muster {

// Returns the registry of all ops. Lives as long as the process.
const OpRegistry& BuiltinOps();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_BUILTIN_OPS_H_
