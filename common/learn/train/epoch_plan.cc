#include "common/learn/train/epoch_plan.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::Status CheckValidationSplit(double validation_split) {
  // Comparisons with NaN are false.
  if (validation_split >= 0 && validation_split < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("validation_split is ", validation_split,
                   "; expected a share of at least 0 and below 1"));
}

absl::StatusOr<int64_t> TrainingExampleCount(int64_t example_count,
                                             double validation_split) {
  RETURN_IF_ERROR(CheckValidationSplit(validation_split));
  const auto count = static_cast<int64_t>(std::floor(
      static_cast<double>(example_count) * (1.0 - validation_split)));
  if (count > 0 && count < example_count) return count;
  return absl::InvalidArgumentError(absl::StrCat(
      "validation_split is ", validation_split, ", which leaves ", count,
      " of ", example_count, " examples to train on and ",
      example_count - count, " to validate on; expected one at least of each"));
}

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
