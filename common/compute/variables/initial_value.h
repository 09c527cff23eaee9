#ifndef COMMON_COMPUTE_VARIABLES_INITIAL_VALUE_H_
#define COMMON_COMPUTE_VARIABLES_INITIAL_VALUE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Larger ones would take minutes.
inline constexpr int64_t kOrthogonalElementsMax = int64_t{1} << 26;

//   kInvalidArgument  `shape` has less than two axes or more elements than
//                     kOrthogonalElementsMax, or `gain` is not finite
absl::Status CheckOrthogonal(const Shape& shape, double gain);

// Returns a random matrix whose rows, or columns if there are fewer of them,
// are orthogonal vectors of length `gain`. The last axis of `shape` is the
// columns, the other axes are the rows. The values are the Q of a QR
// decomposition of normal numbers, uniform among all such matrices (Mezzadri,
// "How to generate random matrices from the classical compact groups", 2007).
//
// Errors are those of CheckOrthogonal().
//
// Equivalent to: keras.initializers.Orthogonal.
absl::StatusOr<std::vector<float>> OrthogonalValues(const Shape& shape,
                                                    double gain, uint64_t key);

namespace proto {
class VariableSpec;
}  // namespace proto

// The initial value of a variable. Each element is a pure function of the
// initializer with its seed and of the element's position in the whole
// variable. A shard therefore fills only its own rows and, for any number of
// shards, holds the values of the unsharded variable.

// True if `spec` describes a valid variable: a name, a known dtype of numbers,
// a fully known shape, and an initializer and a constraint that fit the dtype
// and shape. A spec with no initializer starts at zero.
//   kInvalidArgument  names the variable and what is wrong with it
absl::Status ValidateVariableSpec(const proto::VariableSpec& spec);

// Fills `slice` with rows [row_begin, row_end) of the variable's outermost
// dimension. A scalar has one row, and its slice is a scalar. An invalid
// `slice` is allocated; a valid one has the type of those rows.
//   kInvalidArgument  the spec is invalid, the rows are not in the
//                     variable, or `slice` has another type
absl::Status FillInitialValue(const proto::VariableSpec& spec,
                              int64_t row_begin, int64_t row_end,
                              Tensor* slice);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_INITIAL_VALUE_H_
