#ifndef COMMON_LEARN_TRAIN_VALIDATION_SPLIT_H_
#define COMMON_LEARN_TRAIN_VALIDATION_SPLIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Checks the fraction of the examples that is used for validation.
//   kInvalidArgument  it is not at least 0 and below 1
absl::Status CheckValidationSplit(double validation_split);

// Returns how many of `example_count` examples are used for training: the first
// ones. The last `validation_split` of them are used for validation. Rounds as
// Keras does: floor(example_count * (1 - validation_split)).
//   kInvalidArgument  as for CheckValidationSplit(), or training or validation
//                     would have no examples
absl::StatusOr<int64_t> TrainingExampleCount(int64_t example_count,
                                             double validation_split);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_VALIDATION_SPLIT_H_
