#include "common/learn/train/validation_split.h"

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

}  // namespace muster
