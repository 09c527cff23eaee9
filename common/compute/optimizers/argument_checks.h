#ifndef COMMON_COMPUTE_OPTIMIZERS_ARGUMENT_CHECKS_H_
#define COMMON_COMPUTE_OPTIMIZERS_ARGUMENT_CHECKS_H_

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// Range checks of hyperparameters.
//   kInvalidArgument  `value` is out of range; the message has the name, the
//                     value and the range

inline absl::Status CheckInRange(absl::string_view name, double value,
                                 double minimum, double maximum) {
  if (value >= minimum && value <= maximum) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value,
                                                 "; expected a number from ",
                                                 minimum, " to ", maximum));
}

inline absl::Status CheckNotNegative(absl::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is ", value, "; expected a finite number, not negative"));
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ARGUMENT_CHECKS_H_
