#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAGRAD_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/update_rule.h"
#include "proto/optimizer.pb.h"

namespace muster {

// a += g^2;  w -= rate * g / sqrt(a + epsilon)
//   kInvalidArgument  a hyperparameter is out of range
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdagrad(
    const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAGRAD_H_
