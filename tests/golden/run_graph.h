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

// Traces `function` over `arguments` and runs it with the CPU's kernels.
// `variables` are what the graph may read. Dies when anything fails.
std::vector<Tensor> RunTraced(
    absl::Span<const Tensor> arguments,
    const std::map<std::string, Tensor>& variables,
    absl::FunctionRef<std::vector<Value>(absl::Span<const Value>)> function);

}  // namespace muster

#endif  // TESTS_GOLDEN_RUN_GRAPH_H_
