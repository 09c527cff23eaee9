#ifndef COMMON_COMPUTE_KERNELS_RECURRENCE_ARGUMENTS_H_
#define COMMON_COMPUTE_KERNELS_RECURRENCE_ARGUMENTS_H_

#include <cstdint>

#include "common/compute/kernels/recurrence_operands.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/recurrence_options.h"

// Helpers for the host code of all kernels of recurrent layers.
namespace muster::recurrence {

// Runs a body of recurrence.h as a loop over its elements, for RunVectorized().
template <typename Body>
struct EachElement {
  template <typename... Arguments>
  MUSTER_INLINE static void Run(int64_t count, Arguments... arguments) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) Body::At(i, arguments...);
  }
};

// Returns the operands at their positions among the inputs and outputs of the
// ops. `Source` has input_data(i), mask(i) and output_data(i).
template <typename C, typename Source>
ForwardOperands<C> MakeForwardOperands(const RecurrenceOptions& options,
                                       Source& source) {
  ForwardOperands<C> operands;
  int input = 0;
  operands.projected = source.input_data(input++);
  ++input;  // The recurrent kernel.
  int output = 0;
  operands.outputs = source.output_data(output++);
  operands.last_output = source.output_data(output++);
  for (int s = 0; s < options.state_count(); ++s) {
    operands.initial[s] = source.input_data(input++);
    operands.last[s] = source.output_data(output++);
  }
  if (options.has_recurrent_bias()) {
    operands.recurrent_bias = source.input_data(input++);
  }
  if (options.has_scale) operands.scale = source.input_data(input++);
  if (options.has_mask) operands.mask = source.mask(input++);
  if (!options.keep_steps) return operands;
  for (int s = 0; s < options.state_count(); ++s) {
    operands.before[s] = source.output_data(output++);
  }
  operands.kept = source.output_data(output++);
  return operands;
}

template <typename C, typename Source>
BackwardOperands<C> MakeBackwardOperands(const RecurrenceOptions& options,
                                         Source& source) {
  BackwardOperands<C> operands;
  int input = 0;
  operands.output_gradient = source.input_data(input++);
  ++input;  // The recurrent kernel.
  operands.last_output_gradient = source.input_data(input++);
  for (int s = 0; s < options.state_count(); ++s) {
    operands.last_gradients[s] = source.input_data(input++);
  }
  for (int s = 0; s < options.state_count(); ++s) {
    operands.before[s] = source.input_data(input++);
  }
  operands.kept = source.input_data(input++);
  if (options.has_scale) operands.scale = source.input_data(input++);
  if (options.has_mask) operands.mask = source.mask(input++);
  int output = 0;
  operands.projected_gradient = source.output_data(output++);
  if (options.product_count() > 0) {
    operands.product = source.output_data(output++);
  }
  for (int s = 0; s < options.state_count(); ++s) {
    operands.initial_gradients[s] = source.output_data(output++);
  }
  if (options.has_scale) {
    operands.scale_gradient = source.output_data(output++);
  }
  return operands;
}

}  // namespace muster::recurrence

#endif  // COMMON_COMPUTE_KERNELS_RECURRENCE_ARGUMENTS_H_
