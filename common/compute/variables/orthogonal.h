#ifndef COMMON_COMPUTE_VARIABLES_ORTHOGONAL_H_
#define COMMON_COMPUTE_VARIABLES_ORTHOGONAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/tensor/shape.h"

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

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ORTHOGONAL_H_
