#ifndef COMMON_COMPUTE_KERNELS_RECURRENCE_OPERANDS_H_
#define COMMON_COMPUTE_KERNELS_RECURRENCE_OPERANDS_H_

#include "common/core/base/host_device.h"

// The operands of the ops Recurrence and RecurrenceGrad as arrays of C, which
// is float or double, on the host and in device kernels.
namespace muster::recurrence {

// An LSTM has two states: the output and the cell.
inline constexpr int kStatesMax = 2;

struct Extents {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t units = 0;
};

struct Rows {
  int64_t begin = 0;
  int64_t end = 0;
  MUSTER_HOST_DEVICE int64_t count() const { return end - begin; }
};

// An activation has forward(count, x, y) and backward(count, x, y, dy, dx), as
// RowActivation.
template <typename Activation>
struct Activations {
  Activation candidate;
  Activation gate;
};

// The operands of Recurrence. All sequences are batch-major. Outputs are in the
// order of steps, all other operands in the order of time.
template <typename C>
struct ForwardOperands {
  const C* projected = nullptr;       // [batch, time, gates units]
  const C* initial[kStatesMax] = {};  // Each [batch, units].
  const C* recurrent_bias = nullptr;  // [gates units], or null.
  const C* scale = nullptr;           // [batch, units], or null.
  const bool* mask = nullptr;         // [batch, time], or null.
  C* outputs = nullptr;               // [batch, time, units]
  C* last_output = nullptr;           // [batch, units]
  C* last[kStatesMax] = {};           // Each [batch, units].
  C* before[kStatesMax] = {};         // Each [batch, time, units], or null.
  C* kept = nullptr;                  // [batch, time, kept units], or null.
};

// The operands of RecurrenceGrad, ordered likewise.
template <typename C>
struct BackwardOperands {
  const C* output_gradient = nullptr;        // [batch, time, units]
  const C* last_output_gradient = nullptr;   // [batch, units]
  const C* last_gradients[kStatesMax] = {};  // Each [batch, units].
  const C* before[kStatesMax] = {};          // Each [batch, time, units].
  const C* kept = nullptr;                   // [batch, time, kept units]
  const C* scale = nullptr;                  // [batch, units], or null.
  const bool* mask = nullptr;                // [batch, time], or null.
  C* projected_gradient = nullptr;           // [batch, time, gates units]
  C* product = nullptr;  // [batch, time, product units] or null
  C* initial_gradients[kStatesMax] = {};  // Each [batch, units].
  C* scale_gradient = nullptr;            // [batch, units], or null.
};

}  // namespace muster::recurrence

#endif  // COMMON_COMPUTE_KERNELS_RECURRENCE_OPERANDS_H_
