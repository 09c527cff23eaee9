#ifndef COMMON_LEARN_NN_SAMPLE_WEIGHTS_H_
#define COMMON_LEARN_NN_SAMPLE_WEIGHTS_H_

#include "common/compute/graph/graph_builder.h"

// Alignment of labels, predictions and sample weights, as in Keras.
namespace muster::internal {

// Stands for absent weights.
inline Value NoWeights() { return Value(); }
inline bool HasWeights(const Value& weights) {
  return weights.builder() != nullptr;
}

// Casts 16-bit floats to float32, because a sum of many of them would lose
// digits.
Value AtLeastFloat32(Value x);

// Casts `labels` to the dtype of `predictions`. If one of the two has an extra
// last axis of extent 1, as in [batch] and [batch, 1], adds the axis to
// `labels` or drops it.
Value AlignLabels(Value labels, Value predictions);

// Returns one integer label for each row of predictions [..., classes]. Drops a
// last axis of extent 1 from labels of the same rank.
Value AlignSparseLabels(Value labels, Value predictions);

// The criterion by which Keras tells the kind of labels: whether predictions
// have one class, [..., 1], and whether labels are class numbers, which have a
// lower rank than the predictions, or a last axis of extent 1.
bool IsBinary(Value predictions);
bool IsSparse(Value labels, Value predictions);

// Returns `weights` in the dtype of `values`, in a shape that broadcasts
// against them. Axes of extent 1 are added or dropped at the end.
Value AlignWeights(Value weights, Value values);

// Returns `weights` with 0 where `mask`, bool, is false. Absent weights are 1.
// The leading axes of the two must match.
Value MaskWeights(Value weights, Value mask);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_SAMPLE_WEIGHTS_H_
