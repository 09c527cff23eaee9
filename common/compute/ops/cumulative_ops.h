#ifndef COMMON_COMPUTE_OPS_CUMULATIVE_OPS_H_
#define COMMON_COMPUTE_OPS_CUMULATIVE_OPS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"

// Running results along an axis.
namespace muster {

struct CumSumOptions {
  int64_t axis = 0;  // A negative axis counts from the last one.
  // Element i is the sum of the elements before i, without i itself.
  bool exclusive = false;
  bool reverse = false;  // From the last element to the first.
};
// Element i is the sum of the elements 0 to i of `x` along the axis. The result
// has the type of `x`, which holds numbers. Sums of floats are computed in
// float64, element by element; integers wrap around.
//
// Equivalent to: tf.cumsum.
Value CumSum(Value x, const CumSumOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_CUMULATIVE_OPS_H_
