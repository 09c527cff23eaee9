#ifndef COMMON_COMPUTE_OPS_NORMALIZATION_OPS_H_
#define COMMON_COMPUTE_OPS_NORMALIZATION_OPS_H_

#include "common/compute/graph/graph_builder.h"

namespace muster {

// Batch normalization over the last axis: normalizes every channel by its mean
// and variance (Ioffe and Szegedy, 2015).
//
// `x` is floating, of rank 2 or more. All other operands are [channels] of one
// dtype: that of `x`, or float32 if `x` has 16 bits.

struct BatchNormOptions {
  double epsilon = 1e-3;
};

struct BatchNormOutputs {
  Value y;         // (x - mean) / sqrt(variance + epsilon) * scale + offset
  Value mean;      // The mean of this batch.
  Value variance;  // The mean square of x - mean in this batch.
};

// Normalizes by the statistics of the batch. Gradients flow through the
// statistics, too. Cannot be differentiated twice.
BatchNormOutputs BatchNormTraining(Value x, Value scale, Value offset,
                                   const BatchNormOptions& options = {});

// Normalizes by given statistics, such as moving averages. Gradients flow to
// all operands.
Value BatchNormInference(Value x, Value scale, Value offset, Value mean,
                         Value variance, const BatchNormOptions& options = {});

// Layer normalization over the last axes: normalizes every row by its mean and
// variance (Ba et al., 2016).
//
// `x` is floating. `scale` and `offset` have the shape of the last axes of `x`,
// of which they have one or more, and one dtype: that of `x`, or float32 if `x`
// has 16 bits. A row has the elements along these axes.
struct LayerNormOptions {
  double epsilon = 1e-3;
};

struct LayerNormOutputs {
  Value y;  // (x - mean) * inverse * scale + offset, of the type of x.
  // They have the dtype of `scale`, and the shape of the other axes of `x`.
  Value mean;
  Value inverse;  // 1 / sqrt(variance + epsilon)
};

// Can be differentiated any number of times.
LayerNormOutputs LayerNorm(Value x, Value scale, Value offset,
                           const LayerNormOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_NORMALIZATION_OPS_H_
