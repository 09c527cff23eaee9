#ifndef COMMON_LEARN_TRAIN_VALIDATION_SPLIT_H_
#define COMMON_LEARN_TRAIN_VALIDATION_SPLIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// The share of the examples that validate.
//   kInvalidArgument  not at least 0 and below 1
absl::Status CheckValidationSplit(double validation_split);

// Of so many examples the number that is trained on, which are the first ones;
// the last `validation_split` of them validate. Keras' rule, to the rounding:
// floor(example_count * (1 - validation_split)).
//   kInvalidArgument  as CheckValidationSplit(), or one of the two would have
//                     no examples
absl::StatusOr<int64_t> TrainingExampleCount(int64_t example_count,
                                             double validation_split);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_VALIDATION_SPLIT_H_
