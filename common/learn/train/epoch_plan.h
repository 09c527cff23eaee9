#ifndef COMMON_LEARN_TRAIN_EPOCH_PLAN_H_
#define COMMON_LEARN_TRAIN_EPOCH_PLAN_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

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

// How the training data is divided into epochs.
struct EpochPlan {
  Dataset data;
  // Maximal number of steps of an epoch; unset: until the data ends.
  std::optional<int64_t> steps_max;
  // Expected number of steps of an epoch; unset if unknown.
  std::optional<int64_t> steps_expected;
};

// `draws_from_copies` is Strategy::draws_from_copies(). If it is true and the
// length of the data is unknown, the data is read once to count its elements.
//   kInvalidArgument  the data never ends, and `steps` is not given
absl::StatusOr<EpochPlan> PlanEpochs(const Dataset& data,
                                     std::optional<int64_t> steps,
                                     bool draws_from_copies);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EPOCH_PLAN_H_
