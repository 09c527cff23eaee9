#ifndef COMMON_COMPUTE_KERNELS_RECURRENCE_OPERANDS_H_
#define COMMON_COMPUTE_KERNELS_RECURRENCE_OPERANDS_H_

#include <cstdint>
#include <vector>

#include "common/compute/kernels/row_activation.h"
#include "common/core/tensor/recurrence_options.h"

// The operands of the ops Recurrence and RecurrenceGrad as arrays of C, which
// is float or double.
namespace muster::recurrence {

struct Extents {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t units = 0;
};

struct Rows {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

template <typename C>
struct Activations {
  RowActivation<C> candidate;
  RowActivation<C> gate;
};

// The operands of Recurrence. All sequences are batch-major. Outputs are in the
// order of steps, all others in that of time.
template <typename C>
struct ForwardOperands {
  const C* projected = nullptr;       // [batch, time, gates units]
  std::vector<const C*> initial;      // Each [batch, units].
  const C* recurrent_bias = nullptr;  // [gates units], or null.
  const C* scale = nullptr;           // [batch, units], or null.
  const bool* mask = nullptr;         // [batch, time], or null.
  C* outputs = nullptr;               // [batch, time, units]
  C* last_output = nullptr;           // [batch, units]
  std::vector<C*> last;               // Each [batch, units].
  std::vector<C*> before;             // Each [batch, time, units], or null.
  C* kept = nullptr;                  // [batch, time, kept units], or null.
};

// The operands of RecurrenceGrad, in the same orders.
template <typename C>
struct BackwardOperands {
  const C* output_gradient = nullptr;       // [batch, time, units]
  const C* last_output_gradient = nullptr;  // [batch, units]
  std::vector<const C*> last_gradients;     // Each [batch, units].
  std::vector<const C*> before;             // Each [batch, time, units].
  const C* kept = nullptr;                  // [batch, time, kept units]
  const C* scale = nullptr;                 // [batch, units], or null.
  const bool* mask = nullptr;               // [batch, time], or null.
  C* projected_gradient = nullptr;          // [batch, time, gates units]
  C* product = nullptr;               // [batch, time, product units] or null
  std::vector<C*> initial_gradients;  // Each [batch, units].
  C* scale_gradient = nullptr;        // [batch, units], or null.
};

// The operands by their positions in the inputs and outputs of the ops.
// `Source` has input_data(i), mask(i) and output_data(i).
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
    operands.initial.push_back(source.input_data(input++));
    operands.last.push_back(source.output_data(output++));
  }
  if (options.has_recurrent_bias()) {
    operands.recurrent_bias = source.input_data(input++);
  }
  if (options.has_scale) operands.scale = source.input_data(input++);
  if (options.has_mask) operands.mask = source.mask(input++);
  if (!options.keep_steps) return operands;
  for (int s = 0; s < options.state_count(); ++s) {
    operands.before.push_back(source.output_data(output++));
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
    operands.last_gradients.push_back(source.input_data(input++));
  }
  for (int s = 0; s < options.state_count(); ++s) {
    operands.before.push_back(source.input_data(input++));
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
    operands.initial_gradients.push_back(source.output_data(output++));
  }
  if (options.has_scale) {
    operands.scale_gradient = source.output_data(output++);
  }
  return operands;
}

}  // namespace muster::recurrence

#endif  // COMMON_COMPUTE_KERNELS_RECURRENCE_OPERANDS_H_
