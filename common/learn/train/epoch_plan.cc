#include "common/learn/train/epoch_plan.h"

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<EpochPlan> PlanEpochs(const Dataset& data,
                                     std::optional<int64_t> steps,
                                     bool draws_from_copies) {
  RETURN_IF_ERROR(data.status());
  const int64_t cardinality = data.Cardinality();
  EpochPlan plan{.data = data, .steps_max = steps, .steps_expected = steps};

  if (draws_from_copies) {
    // Each process reads its own copy. An epoch is a number of steps of all
    // processes together.
    if (!steps.has_value() && cardinality == Dataset::kInfinite) {
      return absl::InvalidArgumentError(
          "steps_per_epoch is needed: workers draw from data that never ends");
    }
    if (!steps.has_value()) {
      // Counts the elements, because the length of a file is unknown.
      ASSIGN_OR_RETURN(const int64_t length, data.CountElements());
      plan.steps_max = plan.steps_expected = length;
    }
    if (cardinality != Dataset::kInfinite) plan.data = data.Repeat();
    return plan;
  }
  if (steps.has_value()) return plan;
  if (cardinality == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "steps_per_epoch is needed: the data never ends");
  }
  if (cardinality >= 0) plan.steps_expected = cardinality;
  return plan;
}

}  // namespace muster
