#ifndef COMMON_COMPUTE_STABLEHLO_STEP_PROGRAM_H_
#define COMMON_COMPUTE_STABLEHLO_STEP_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/stablehlo/update_passes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

namespace proto {
class VariableSpec;
}  // namespace proto

// A variable as the program of a step uses it.
struct StepVariable {
  std::shared_ptr<const proto::VariableSpec> spec;  // Never null.
  TensorType type;
  bool is_updated = false;
  // If the step applies a gradient: the rule for this step, and the types of
  // the slots.
  VariablePasses rule = {};
  std::vector<TensorType> slots = {};
};

struct StepProgramOptions {
  int replica_count = 1;
  // False: every replica computes the whole batch, so that nothing is reduced.
  bool divides_batch = true;
  // The rows of one replica's batch, if replicas divide it.
  int64_t rows_per_replica = 0;
  // Steps of one execution, which run one after another in a loop.
  int step_count = 1;
  // Sums the results of the replicas. Otherwise, each replica returns its own.
  bool sums_results = true;
};

// Returns the module of one step as one program: forward and backward pass,
// reduction of gradients over the replicas, and updates. Each replica has a
// copy of all variables. `typed` is the graph of one replica. `variables` are
// FindVariableUses() of the graph, in order.
//
// Parameters of "main", in order:
//   the parameters of the graph, each replica's part
//   for each variable: its value, then its slots
//   f32 vector: PassCoefficients() of the variables, in order
//   i64 scalar: the seed of the step; that of each following step is 1 higher
// Results, in order:
//   the results of the graph
//   for each updated variable: its value, then its slots, in the memory of the
//   parameters
// With a step_count above 1, the parameters of the graph, the coefficients and
// the results of the graph have one more axis in front: that of the steps.
//
// Gradients are the mean over the examples of all replicas if the step has
// SetLossDenominator(), otherwise the sum, and other updates are aggregated as
// MirroredVariableStore does. Replicas keep their own copies of variables that
// are synchronized on reading.
//   kUnimplemented    as TranslateGraph() and CheckPasses(); or an update has
//   no
//                     translation: names the variable
//   kInvalidArgument  the variable has no aggregation; or a result cannot be
//                     summed
absl::StatusOr<std::string> MakeStepProgram(
    const Graph& typed, absl::Span<const StepVariable> variables,
    const StepProgramOptions& options);

}  // namespace muster

#endif  // COMMON_COMPUTE_STABLEHLO_STEP_PROGRAM_H_
