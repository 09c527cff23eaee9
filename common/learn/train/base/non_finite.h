#ifndef COMMON_LEARN_TRAIN_BASE_NON_FINITE_H_
#define COMMON_LEARN_TRAIN_BASE_NON_FINITE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// A loss or a metric that became NaN or infinite.
struct NonFiniteValue {
  std::string name;  // The name in logs: "loss", "val_accuracy".
  double value = 0;
  int epoch = 0;     // From 0.
  int64_t step = 0;  // Number of finished steps in that epoch.
};

// "loss is nan after step 3 of epoch 1"
std::string ToString(const NonFiniteValue& found);

// Returns the error of a run that has found `found`: kInternal, with advice on
// the cause and on how to let such a run succeed. `resumption` is a clause
// about the checkpoint from which training can resume; empty: unknown.
absl::Status NonFiniteError(const NonFiniteValue& found,
                            absl::string_view resumption = "");

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_NON_FINITE_H_
