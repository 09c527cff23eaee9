#ifndef COMMON_LEARN_TRAIN_BASE_CLASS_WEIGHTS_H_
#define COMMON_LEARN_TRAIN_BASE_CLASS_WEIGHTS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// How much examples of a class count; 1 for classes that are not named.
// Equivalent to: Keras' `class_weight`.
using ClassWeights = std::map<int64_t, double>;

//   kInvalidArgument  a class is negative or above 2^20, or a weight is no
//                     finite number of at least 0
absl::Status CheckClassWeights(const ClassWeights& weights);

// The weight of each label, float32 [batch...]: labels are class numbers
// [batch...] or [batch..., 1], or one-hot [batch..., classes].
Value WeightsOfLabels(Value labels, const ClassWeights& weights);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_CLASS_WEIGHTS_H_
