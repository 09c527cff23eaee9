#ifndef TESTS_GOLDEN_RUN_GRAPH_H_
#define TESTS_GOLDEN_RUN_GRAPH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Traces `function` with parameters for `arguments` and runs it with the CPU
// kernels. `variables` are the variables that the graph can read. The extents
// of the first `unknown_axis_count` axes are unknown while tracing. Aborts on
// any error.
std::vector<Tensor> RunTraced(
    absl::Span<const Tensor> arguments,
    const std::map<std::string, Tensor>& variables,
    absl::FunctionRef<std::vector<Value>(absl::Span<const Value>)> function,
    int unknown_axis_count = 0);

}  // namespace muster

#endif  // TESTS_GOLDEN_RUN_GRAPH_H_
