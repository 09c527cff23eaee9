#ifndef COMMON_NET_COLLECTIVES_REDUCE_KERNELS_H_
#define COMMON_NET_COLLECTIVES_REDUCE_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"

// Element-wise reductions of arrays in memory, in one pass over each array.
//
// The result for an element depends only on the values at its index and on the
// order of the inputs. It does not depend on the element's address, the number
// of elements, how they are split into calls, or the width of the machine's
// vectors. Ranks that reduce different parts therefore get the same bits as one
// rank that reduces all of them.
//
// Float16 and bfloat16 are computed in float32 and rounded once, at the end of
// a call. Integers wrap around. A NaN among floating inputs makes the result of
// any reduction a NaN. Elements need no alignment.
namespace muster {

//   kUnimplemented  values of `dtype` have no reduction (bool, string, uint8)
absl::Status CheckReducible(DType dtype);

// Writes the reduction of `inputs`, combined from the first to the last, to
// every array of `outputs`. kMean divides by inputs.size(). An output either
// begins at the same address as one of the inputs or overlaps none of them.
// `inputs` is not empty; `outputs` may be.
void Reduce(ReduceOp op, DType dtype, int64_t element_count,
            absl::Span<const void* const> inputs,
            absl::Span<void* const> outputs);

// Sets accumulator[i] = accumulator[i] op addend[i], for reductions whose
// inputs arrive one after another. kMean only adds; the caller finishes with
// Divide(). (A sum of two values has the same bits in either order.)
void Accumulate(ReduceOp op, DType dtype, int64_t element_count,
                const void* addend, void* accumulator);

// Divides by `divisor` >= 1 in place. Integer quotients are rounded towards
// zero.
void Divide(DType dtype, int64_t element_count, int divisor, void* data);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_REDUCE_KERNELS_H_
