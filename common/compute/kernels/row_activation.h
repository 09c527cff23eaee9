#ifndef COMMON_COMPUTE_KERNELS_ROW_ACTIVATION_H_
#define COMMON_COMPUTE_KERNELS_ROW_ACTIVATION_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/functions/cell_activation.h"

namespace muster {

// An activation of one row of numbers, with its gradient. `x` and `y` are the
// input and the output of Forward; `dy` and `dx` their gradients. Arrays have
// `count` elements; `y` may be `x`, and `dx` may be `dy`.
template <typename C>
struct RowActivation {
  void (*forward)(int64_t count, const C* x, C* y) = nullptr;
  void (*backward)(int64_t count, const C* x, const C* y, const C* dy,
                   C* dx) = nullptr;
};

// Returns the activation of Keras with that name ("tanh"), or null pointers if
// there is none. Softmax and log_softmax apply to the whole row, all others to
// single elements. C is float or double.
template <typename C>
RowActivation<C> FindRowActivation(absl::string_view name);

// As above, for device kernels, which select an activation by a number. The
// name must be one of RecurrenceActivations().
functions::CellActivation FindCellActivation(absl::string_view name);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_ROW_ACTIVATION_H_
