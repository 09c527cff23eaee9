#ifndef COMMON_LEARN_TRAIN_BASE_NON_FINITE_H_
#define COMMON_LEARN_TRAIN_BASE_NON_FINITE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// A loss or a metric that became NaN or infinite.
struct NonFiniteValue {
  std::string name;  // As logs call it: "loss", "val_accuracy".
  double value = 0;
  int epoch = 0;     // From 0.
  int64_t step = 0;  // Steps of that epoch that were done.
};

// "loss is nan after step 3 of epoch 1"
std::string ToString(const NonFiniteValue& found);

// The error of a run that has found `found`: kInternal, with what to look
// for and how to let such a run succeed. `resumption` says what training can be
// resumed from, as a clause; empty: unknown.
absl::Status NonFiniteError(const NonFiniteValue& found,
                            absl::string_view resumption = "");

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_NON_FINITE_H_
