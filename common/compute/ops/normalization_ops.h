#ifndef COMMON_COMPUTE_OPS_NORMALIZATION_OPS_H_
#define COMMON_COMPUTE_OPS_NORMALIZATION_OPS_H_

#include "common/compute/graph/graph_builder.h"

// Batch normalization over the last axis: normalizes every channel by its mean
// and variance (Ioffe and Szegedy, 2015).
//
// `x` is floating, of rank 2 or more. All other operands are [channels] of one
// dtype: that of `x`, or float32 if `x` has 16 bits.
namespace muster {

struct BatchNormOptions {
  double epsilon = 1e-3;
};

struct BatchNormOutputs {
  Value y;         // (x - mean) / sqrt(variance + epsilon) * scale + offset
  Value mean;      // Of this batch.
  Value variance;  // Of this batch: the mean square of x - mean.
};

// Normalizes by the statistics of the batch. Gradients flow through the
// statistics, too. Cannot be differentiated twice.
BatchNormOutputs BatchNormTraining(Value x, Value scale, Value offset,
                                   const BatchNormOptions& options = {});

// Normalizes by given statistics, such as moving averages. Gradients flow to
// all operands.
Value BatchNormInference(Value x, Value scale, Value offset, Value mean,
                         Value variance, const BatchNormOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_NORMALIZATION_OPS_H_
