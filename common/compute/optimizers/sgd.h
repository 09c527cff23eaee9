#ifndef COMMON_COMPUTE_OPTIMIZERS_SGD_H_
#define COMMON_COMPUTE_OPTIMIZERS_SGD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/update_rule.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Gradient descent:  w -= rate * g, or with momentum
//   m = momentum * m - rate * g;  w += nesterov ? momentum * m - rate * g : m
//   kInvalidArgument  a hyperparameter is out of range
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgd(
    const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_SGD_H_
