#ifndef COMMON_LEARN_TRAIN_EPOCH_PLAN_H_
#define COMMON_LEARN_TRAIN_EPOCH_PLAN_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

// How the training data is divided into epochs.
struct EpochPlan {
  Dataset data;
  // Steps that an epoch runs at most; unset: until the data ends.
  std::optional<int64_t> steps_max;
  // Steps that an epoch should have; unset when unknown.
  std::optional<int64_t> steps_expected;
};

// `draws_from_copies` is what the strategy says. Where it does and the length
// of the data is unknown, that is found by going through the data once.
//   kInvalidArgument  the data never ends, and `steps` is not given
absl::StatusOr<EpochPlan> PlanEpochs(const Dataset& data,
                                     std::optional<int64_t> steps,
                                     bool draws_from_copies);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EPOCH_PLAN_H_
