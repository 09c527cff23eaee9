#ifndef COMMON_COMPUTE_OPTIMIZERS_FTRL_H_
#define COMMON_COMPUTE_OPTIMIZERS_FTRL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/update_rule.h"
#include "proto/optimizer.pb.h"

namespace muster {

// "Follow the regularized leader": keeps weights at exactly zero under an L1
// penalty. As Keras writes it, with learning_rate_power p:
//   b = a + g^2
//   z += g + 2 * l2_shrinkage * w - (b^-p - a^-p) / rate * w
//   w = (clip(z, -l1, l1) - z) / (b^-p / rate + 2 * l2 + beta / rate);  a = b
//   kInvalidArgument  a hyperparameter is out of range
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeFtrl(
    const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_FTRL_H_
