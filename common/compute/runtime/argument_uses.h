#ifndef COMMON_COMPUTE_RUNTIME_ARGUMENT_USES_H_
#define COMMON_COMPUTE_RUNTIME_ARGUMENT_USES_H_

#include <vector>

#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/runtime/step_arguments.h"

namespace muster {

// Returns how the nodes of a typed graph, placed on a device and the host, read
// each argument. An argument of kUploadBytesMin or more that is only copied to
// the device is kUpload.
std::vector<StepArguments::Use> UsesOfArguments(const Graph& typed_graph,
                                                const OpRegistry& ops);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_ARGUMENT_USES_H_
