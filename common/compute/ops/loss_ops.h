#ifndef COMMON_COMPUTE_OPS_LOSS_OPS_H_
#define COMMON_COMPUTE_OPS_LOSS_OPS_H_

#include "common/compute/graph/graph_builder.h"

// Cross-entropies from logits, accurate where softmax or sigmoid would round to
// 0 or 1. The classes are the last axis.
namespace muster {

// -sum(labels * log_softmax(logits)) -> [batch...]. `labels` has the type of
// `logits` and should sum to 1 along the last axis; as in TensorFlow, the
// gradient assumes this.
Value SoftmaxCrossEntropy(Value logits, Value labels);

// As SoftmaxCrossEntropy() with one class per example: `labels` is int32 or
// int64 [batch...]. A label outside of [0, classes) fails the step.
Value SparseSoftmaxCrossEntropy(Value logits, Value labels);

// Elementwise. Both operands have the same type.
Value SigmoidCrossEntropy(Value logits, Value labels);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_LOSS_OPS_H_
