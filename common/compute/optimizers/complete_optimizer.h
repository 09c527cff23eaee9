#ifndef COMMON_COMPUTE_OPTIMIZERS_COMPLETE_OPTIMIZER_H_
#define COMMON_COMPUTE_OPTIMIZERS_COMPLETE_OPTIMIZER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizer_kind.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// Returns the row of the optimizer's rule; null if `optimizer` has no rule.
const OptimizerKind* FindOptimizerKind(const proto::Optimizer& optimizer);

// Returns the name in job files, such as "adamw"; "optimizer" if it has no
// rule.
std::string OptimizerName(const proto::Optimizer& optimizer);

// Returns `optimizer` with Keras' defaults for absent fields. Every
// hyperparameter of its rule is set, and so is learning_rate unless there is a
// schedule.
//   kInvalidArgument  no rule is set, both learning_rate and a schedule are
//   set,
//                     or another option of all optimizers is invalid; the
//                     message names the fields
absl::StatusOr<proto::Optimizer> CompleteOptimizer(
    const proto::Optimizer& optimizer);

// Returns how many gradients make one update: gradient_accumulation_steps,
// or 1.
int64_t GradientsPerUpdate(const proto::Optimizer& optimizer);

// Returns the learning rate if it is a number, including its location in
// checkpoints of earlier builds. Returns nothing if it is a schedule, or if
// there is no rule.
std::optional<double> ConstantLearningRate(const proto::Optimizer& optimizer);

// `optimizer` must have a rule and no schedule.
void SetConstantLearningRate(double learning_rate, proto::Optimizer* optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_COMPLETE_OPTIMIZER_H_
