#ifndef COMMON_COMPUTE_OPTIMIZERS_RMSPROP_H_
#define COMMON_COMPUTE_OPTIMIZERS_RMSPROP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/update_rule.h"
#include "proto/optimizer.pb.h"

namespace muster {

//   v = rho * v + (1 - rho) * g^2
//   d = rate * g / sqrt(v - average^2 + epsilon), where average is 0 unless
//   centered: then average = rho * average + (1 - rho) * g
//   w -= d, or with momentum  m = momentum * m + d;  w -= m
//   kInvalidArgument  a hyperparameter is out of range
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRmsProp(
    const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_RMSPROP_H_
