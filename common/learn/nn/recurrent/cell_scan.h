#ifndef COMMON_LEARN_NN_RECURRENT_CELL_SCAN_H_
#define COMMON_LEARN_NN_RECURRENT_CELL_SCAN_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"

namespace muster::internal {

// A recurrent layer's inputs, and how to run over them.
struct CellSteps {
  Value x;                     // [batch, time, ...]
  std::vector<Value> initial;  // Empty: zeros.
  Value mask;                  // bool [batch, time], or of no graph.
  bool return_sequences = false;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
};

struct CellOutputs {
  // [batch, time, ...] in the order in which the steps ran; of no graph unless
  // return_sequences.
  Value outputs;
  Value last_output;
  std::vector<Value> last;  // The states after the last step.
};

// Splits the inputs of a recurrent layer, {x, states..., mask}, into `steps`.
// `state_count` is that of the cell. Returns false, after reporting the reason
// to the builder, if they are invalid. Without a mask among the inputs, takes
// that of x.
bool ParseInputs(const Layer& layer, absl::Span<const Value> inputs,
                 int state_count, const CallContext& context, CellSteps* steps);

// Returns zeros [batch, ...shape] of `dtype`, for the batch of `x`.
Value ZeroStates(Value x, const Shape& shape, DType dtype);

// One time step: returns the output and the next states for a row of x and the
// states.
using StepFunction = absl::FunctionRef<std::vector<Value>(
    Value x, absl::Span<const Value> states)>;

// Runs `step` for each time step of `x`, [batch, time, ...], in a Scan().
// `first` is an output that stands for those before the first step, followed by
// the initial states.
CellOutputs ScanSteps(Value x, const std::vector<Value>& first,
                      const CellSteps& steps, StepFunction step);

// Runs the cell, which is an RNNCell, over the steps.
CellOutputs ScanCell(Layer& cell, const CellSteps& steps,
                     const CallContext& context);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_RECURRENT_CELL_SCAN_H_
