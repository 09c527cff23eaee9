#ifndef COMMON_LEARN_STRATEGY_CROSS_DEVICE_AXIS_REDUCTION_H_
#define COMMON_LEARN_STRATEGY_CROSS_DEVICE_AXIS_REDUCTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

// Reductions and concatenations along axes of the tensors of one replica, on
// the host.
namespace muster {

// Sums `value` along `axes`, which may be negative and are removed. Supports
// floating and integer dtypes and sums in order; 16-bit floats are summed in
// float32.
//   kInvalidArgument  an axis is out of range or repeated
//   kUnimplemented    values of this dtype cannot be summed
absl::StatusOr<Tensor> SumAlong(const Tensor& value,
                                absl::Span<const int64_t> axes);

// Returns the number of elements in each sum of SumAlong().
//   kInvalidArgument  as SumAlong()
absl::StatusOr<int64_t> CountAlong(const Shape& shape,
                                   absl::Span<const int64_t> axes);

// Computes sums[i] / count in place; integers are rounded towards zero. If the
// count is 0, the result is NaN for floats and 0 for integers.
void DivideByCount(Tensor* sums, int64_t count);

// Concatenates `parts` along `axis`, which is not negative. The types of the
// parts are equal except for their extents along `axis`. There is at least one
// part.
Tensor ConcatenateAlong(absl::Span<const Tensor> parts, int axis);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_CROSS_DEVICE_AXIS_REDUCTION_H_
