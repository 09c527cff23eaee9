#ifndef COMMON_COMPUTE_OPS_TESTING_GRAPH_INTERPRETER_H_
#define COMMON_COMPUTE_OPS_TESTING_GRAPH_INTERPRETER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

// Runs graphs node by node with the reference kernels, for tests of what ops
// and gradients mean.
namespace muster {

struct InterpreterOptions {
  uint64_t step_seed = 0;
  int64_t example_offset = 0;
  // What ReadVariable and GatherVariable see; updates are not run.
  std::map<std::string, Tensor> variables;
};

// The results of the graph. Errors are those of type inference and kernels.
absl::StatusOr<std::vector<Tensor>> Interpret(
    const Graph& graph, absl::Span<const Tensor> arguments,
    const InterpreterOptions& options = {});

using TracedFunction =
    std::function<std::vector<Value>(const std::vector<Value>& inputs)>;

// Traces `function` with one parameter for each argument, of its type, or with
// every extent unknown; verifies the graph and runs it.
struct InterpretOptions {
  bool unknown_extents = false;
  InterpreterOptions run;
};
absl::StatusOr<std::vector<Tensor>> EvaluateAll(
    const TracedFunction& function, absl::Span<const Tensor> arguments,
    const InterpretOptions& options = {});

// For functions with one result.
absl::StatusOr<Tensor> Evaluate(
    const std::function<Value(const std::vector<Value>& inputs)>& function,
    absl::Span<const Tensor> arguments, const InterpretOptions& options = {});

// The one output of the op `op`.
absl::StatusOr<Tensor> EvaluateOp(const std::string& op,
                                  absl::Span<const Tensor> arguments,
                                  Attributes attributes = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_GRAPH_INTERPRETER_H_
