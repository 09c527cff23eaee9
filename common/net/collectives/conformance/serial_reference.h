#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_SERIAL_REFERENCE_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_SERIAL_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/reduce_op.h"

// The expected results of collectives: values that tell ranks and positions
// apart, and their reductions, computed one after another.
namespace muster {

// A vector of `element_count` numbers for `rank`. They are small integers, so
// that no reduction of up to 16 ranks rounds in any dtype, except the division
// of a mean.
Tensor RankValues(ReduceOp op, DType dtype, int64_t element_count, int rank);

// The reduction of RankValues() of ranks 0 to size-1.
Tensor ReducedValues(ReduceOp op, DType dtype, int64_t element_count, int size);

// Numbers that round when they are added: uniform in [-1, 1), as `dtype`.
Tensor RoughValues(DType dtype, int64_t element_count, int rank);

// Bytes that differ by rank and position, for what is moved and not reduced.
// `dtype` may be any number, or bool.
Tensor RankPattern(DType dtype, int64_t element_count, int rank);

// All that reductions know.
std::vector<DType> ReducibleDTypes();
std::vector<ReduceOp> AllReduceOps();

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_SERIAL_REFERENCE_H_
