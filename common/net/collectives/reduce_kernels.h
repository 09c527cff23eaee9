#ifndef COMMON_NET_COLLECTIVES_REDUCE_KERNELS_H_
#define COMMON_NET_COLLECTIVES_REDUCE_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"

// Element-wise reductions of arrays in memory, one pass over each.
//
// The value of an element depends on the values at its index and on the order
// of the inputs only: not on where it lies, how many elements there are, how
// they were split into calls, or how wide the machine's vectors are. So ranks
// that each reduce another part end with the bits that one of them would have
// made.
//
// Float16 and bfloat16 are computed in float32 and rounded once, at the end of
// a call. Integers wrap around. A NaN among floating inputs makes the result of
// any reduction a NaN. Elements need no alignment.
namespace muster {

//   kUnimplemented  values of `dtype` have no reduction (bool, string, uint8)
absl::Status CheckReducible(DType dtype);

// Every array of `outputs` becomes the reduction of `inputs`, combined from the
// first to the last; kMean divides by inputs.size(). An output either is one of
// the inputs, from its first element on, or touches none of them. `inputs` is
// not empty; `outputs` may be.
void Reduce(ReduceOp op, DType dtype, int64_t element_count,
            absl::Span<const void* const> inputs,
            absl::Span<void* const> outputs);

// accumulator[i] = accumulator[i] op addend[i], one step of a reduction that
// sees its inputs one after another. kMean adds: Divide() ends it. (A sum of
// two has the same bits in either order.)
void Accumulate(ReduceOp op, DType dtype, int64_t element_count,
                const void* addend, void* accumulator);

// Divides by `divisor` >= 1 in place, integers towards zero.
void Divide(DType dtype, int64_t element_count, int divisor, void* data);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_REDUCE_KERNELS_H_
