#ifndef COMMON_COMPUTE_OPS_LOSS_OPS_H_
#define COMMON_COMPUTE_OPS_LOSS_OPS_H_

#include "common/compute/graph/graph_builder.h"

// Cross-entropies from logits, accurate where softmax or sigmoid would round to
// 0 or 1. The classes are the last axis. Equivalent to:
// tf.nn.softmax_cross_entropy_with_logits,
// tf.nn.sparse_softmax_cross_entropy_with_logits and
// tf.nn.sigmoid_cross_entropy_with_logits.
namespace muster {

// -sum(labels * log_softmax(logits)) -> [batch...]. `labels` has the type of
// `logits` and should sum to 1 along the last axis; as in TensorFlow, the
// gradient assumes this.
Value SoftmaxCrossEntropy(Value logits, Value labels);

// As SoftmaxCrossEntropy() with one class per example: `labels` is int32 or
// int64 [batch...]. A label outside of [0, classes) fails the step.
Value SparseSoftmaxCrossEntropy(Value logits, Value labels);

// max(x, 0) - x * y + log(1 + exp(-|x|)) of logits x and labels y, elementwise.
// Both operands have the same type.
Value SigmoidCrossEntropy(Value logits, Value labels);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_LOSS_OPS_H_
