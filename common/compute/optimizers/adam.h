#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAM_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/update_rule.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Adam, and with weight decay AdamW:
//   m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
//   w -= alpha * m / (sqrt(v) + epsilon),
//   alpha = rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) at the t-th update;
// amsgrad puts the largest v so far in the place of v.
//   kInvalidArgument  a hyperparameter is out of range
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(
    const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAM_H_
