#ifndef COMMON_LEARN_TRAIN_BASE_CLASS_WEIGHTS_H_
#define COMMON_LEARN_TRAIN_BASE_CLASS_WEIGHTS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// The weight of examples of each class; 1 for classes without an entry.
// Equivalent to: Keras' `class_weight`.
using ClassWeights = std::map<int64_t, double>;

//   kInvalidArgument  a class is negative or above 2^20, or a weight is
//                     negative or not finite
absl::Status CheckClassWeights(const ClassWeights& weights);

// Returns the weight of each label, float32 [batch...]. Labels are class
// numbers [batch...] or [batch..., 1], or one-hot [batch..., classes].
Value WeightsOfLabels(Value labels, const ClassWeights& weights);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_CLASS_WEIGHTS_H_
