#ifndef COMMON_COMPUTE_OPS_TESTING_GRAPH_INTERPRETER_H_
#define COMMON_COMPUTE_OPS_TESTING_GRAPH_INTERPRETER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

// Runs graphs node by node with the reference kernels, for tests of ops and
// gradients.
namespace muster {

struct InterpreterOptions {
  uint64_t step_seed = 0;
  int64_t example_offset = 0;
  // The values of ReadVariable and GatherVariable. Updates are ignored.
  std::map<std::string, Tensor> variables;
};

// Returns the results of the graph. Errors come from type inference and
// kernels.
absl::StatusOr<std::vector<Tensor>> Interpret(
    const Graph& graph, absl::Span<const Tensor> arguments,
    const InterpreterOptions& options = {});

// Returns subgraphs that are run by Interpret(), for kernels.
std::vector<std::shared_ptr<CompiledSubgraph>> InterpretedSubgraphs(
    const Subgraphs& subgraphs);

using TracedFunction =
    std::function<std::vector<Value>(const std::vector<Value>& inputs)>;

// Traces `function` with one parameter of the type of each argument, or with
// all extents unknown; verifies the graph and runs it.
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

// Returns the only output of op `op`.
absl::StatusOr<Tensor> EvaluateOp(const std::string& op,
                                  absl::Span<const Tensor> arguments,
                                  Attributes attributes = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_GRAPH_INTERPRETER_H_
