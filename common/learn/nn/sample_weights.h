#ifndef COMMON_LEARN_NN_SAMPLE_WEIGHTS_H_
#define COMMON_LEARN_NN_SAMPLE_WEIGHTS_H_

#include "common/compute/graph/graph_builder.h"

// How Keras brings labels, predictions and weights to one rank.
namespace muster::internal {

// What a weight that is not given looks like.
inline Value NoWeights() { return Value(); }
inline bool HasWeights(const Value& weights) {
  return weights.builder() != nullptr;
}

// Sums of many 16-bit numbers need the digits.
Value AtLeastFloat32(Value x);

// `labels` of the rank of `predictions`, where they differ by an axis of extent
// 1 at the end: [batch] and [batch, 1].
Value AlignLabels(Value labels, Value predictions);

// One label for each row of predictions [..., classes]: drops a last axis of
// extent 1 from labels of the same rank.
Value AlignSparseLabels(Value labels, Value predictions);

// `weights` as floats that broadcast against `values`: axes of extent 1 are
// added at the end, or dropped from there.
Value AlignWeights(Value weights, Value values);

// `weights`, or 1 where none are given, and 0 where `mask`, bool, is false. The
// two have leading axes in common.
Value MaskWeights(Value weights, Value mask);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_SAMPLE_WEIGHTS_H_
