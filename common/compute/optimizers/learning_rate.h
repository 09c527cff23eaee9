#ifndef COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_H_
#define COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Learning rates as functions of the number of updates made so far, computed in
// float32 as Keras does.

//   kInvalidArgument  no kind is set, a rate is not a number or negative, steps
//                     are not positive, or lists do not fit each other; the
//                     message names the argument
absl::Status ValidateLearningRate(const proto::LearningRate& learning_rate);

// `learning_rate` is valid and `step` is not negative.
float LearningRateAt(const proto::LearningRate& learning_rate, int64_t step);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LEARNING_RATE_H_
