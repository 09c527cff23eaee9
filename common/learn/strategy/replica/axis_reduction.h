#ifndef COMMON_LEARN_STRATEGY_REPLICA_AXIS_REDUCTION_H_
#define COMMON_LEARN_STRATEGY_REPLICA_AXIS_REDUCTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

// What reductions and gathers do to the tensor of one replica, on the host.
namespace muster {

// `value` summed along `axes`, which may be negative and are not kept. Of float
// or integer numbers, in order; 16-bit floats are summed in float32.
//   kInvalidArgument  an axis is out of range or stands twice
//   kUnimplemented    values of this dtype are not summed
absl::StatusOr<Tensor> SumAlong(const Tensor& value,
                                absl::Span<const int64_t> axes);

// How many elements each of those sums has.
//   kInvalidArgument  as SumAlong()
absl::StatusOr<int64_t> CountAlong(const Shape& shape,
                                   absl::Span<const int64_t> axes);

// sums[i] / count, integers towards zero, in place. Without any elements the
// mean of floats is NaN, that of integers 0.
void DivideByCount(Tensor* sums, int64_t count);

// `parts` one after another along `axis`, which is not negative; their types
// agree but for their extents there. There is at least one.
Tensor ConcatenateAlong(absl::Span<const Tensor> parts, int axis);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_AXIS_REDUCTION_H_
