#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_SERIAL_REFERENCE_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_SERIAL_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/reduce_op.h"

// Inputs and expected results of collectives: values that differ by rank and
// position, and their serially computed reductions.
namespace muster {

// Returns `element_count` numbers for `rank`. They are small integers, so that
// no reduction of up to 16 ranks rounds in any dtype, except the division of a
// mean.
Tensor RankValues(ReduceOp op, DType dtype, int64_t element_count, int rank);

// Returns the reduction of the RankValues() of ranks 0 to size-1.
Tensor ReducedValues(ReduceOp op, DType dtype, int64_t element_count, int size);

// Returns numbers whose sums round: uniform in [-1, 1), as `dtype`.
Tensor RoughValues(DType dtype, int64_t element_count, int rank);

// Returns values that differ by rank and position, for collectives that move
// values without reducing them. `dtype` may be any number, or bool.
Tensor RankPattern(DType dtype, int64_t element_count, int rank);

// All dtypes and operations that reductions support.
std::vector<DType> ReducibleDTypes();
std::vector<ReduceOp> AllReduceOps();

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_SERIAL_REFERENCE_H_
