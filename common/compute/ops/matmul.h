#ifndef COMMON_COMPUTE_OPS_MATMUL_H_
#define COMMON_COMPUTE_OPS_MATMUL_H_

#include "common/compute/graph/graph_builder.h"

namespace muster {

struct MatMulOptions {
  bool transpose_a = false;  // Swaps the last two axes.
  bool transpose_b = false;
};

// The matrix product over the last two axes. The other axes broadcast. Both
// operands have rank 2 or more and the same number dtype.
Value MatMul(Value a, Value b, MatMulOptions options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_MATMUL_H_
