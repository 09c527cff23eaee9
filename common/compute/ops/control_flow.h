#ifndef COMMON_COMPUTE_OPS_CONTROL_FLOW_H_
#define COMMON_COMPUTE_OPS_CONTROL_FLOW_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"

// Branches and loops, which run as often as the data determine. Branches and
// bodies are traced once, as subgraphs of one node. They may use any value of
// the enclosing graph, read variables, and contain branches and loops. They
// have no effects: a body returns the values to assign, and the step assigns
// them after the loop. An op that draws random numbers draws the same ones in
// each iteration, unless its seed depends on the arguments of the iteration.
//
// Gradients flow to the operands and to all floating values that are used. They
// compute the branch, or one iteration at a time, again.
//
// All operands and results are numbers or bool.
namespace muster {

// Returns the results of `then_branch` if `predicate`, a bool scalar, is true,
// and those of `else_branch` otherwise; only that branch runs. Both return the
// same number of values, of equal types.
//
// Equivalent to: tf.cond.
std::vector<Value> Cond(Value predicate,
                        absl::FunctionRef<std::vector<Value>()> then_branch,
                        absl::FunctionRef<std::vector<Value>()> else_branch);

struct ScanOptions {
  // Iterates from the last row to the first. Outputs stay at the rows of the
  // inputs.
  bool reverse = false;
  // The number of iterations if there are no inputs. Otherwise it is their
  // number of rows.
  int64_t length = -1;
};
// The arguments of an iteration, or its results.
struct ScanStep {
  std::vector<Value> carry;
  std::vector<Value> rows;
};
// Calls `body` for each row of the inputs (axis 0), whose number may be unknown
// while tracing. The body gets the carry, first `init`, and one row of each
// input. It returns the next carry, of the same types, and a row of each
// output. Returns the last carry, and the rows of all iterations stacked along
// axis 0.
//
// Equivalent to: jax.lax.scan. tf.scan is a Scan whose outputs are its carry.
ScanStep Scan(absl::Span<const Value> init, absl::Span<const Value> inputs,
              absl::FunctionRef<ScanStep(const ScanStep& step)> body,
              ScanOptions options = {});

struct WhileOptions {
  // -1: no limit. A loop without limit cannot be differentiated, and fails the
  // step with kDeadlineExceeded after 10 minutes.
  int64_t maximum_iterations = -1;
};
// Calls `body` with the carry, first `init`, while `condition` of the carry
// returns a true bool scalar, at most maximum_iterations times. The body
// returns the next carry, of the same types. Returns the last carry.
//
// A gradient keeps the carry before each iteration: maximum_iterations rows.
//
// Equivalent to: tf.while_loop.
std::vector<Value> While(
    absl::Span<const Value> init,
    absl::FunctionRef<Value(const std::vector<Value>& carry)> condition,
    absl::FunctionRef<std::vector<Value>(const std::vector<Value>& carry)> body,
    WhileOptions options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_CONTROL_FLOW_H_
