#ifndef COMMON_COMPUTE_OPTIMIZERS_COMPLETE_OPTIMIZER_H_
#define COMMON_COMPUTE_OPTIMIZERS_COMPLETE_OPTIMIZER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Null if `optimizer` has no rule.
const OptimizerKind* FindOptimizerKind(const proto::Optimizer& optimizer);

// What job files call it: "adamw". "optimizer" if it has no rule.
std::string OptimizerName(const proto::Optimizer& optimizer);

// `optimizer` with Keras' defaults where it says nothing: every hyperparameter
// of its rule is set, and learning_rate unless there is a schedule.
//   kInvalidArgument  no rule is set, learning_rate stands beside a schedule,
//   or
//                     weight_decay or clipping make no sense; names the fields
absl::StatusOr<proto::Optimizer> CompleteOptimizer(
    const proto::Optimizer& optimizer);

// The learning rate if it is a number, also where a checkpoint of an earlier
// build has it. None if it is a schedule, or there is no rule.
std::optional<double> ConstantLearningRate(const proto::Optimizer& optimizer);

// `optimizer` has a rule and no schedule.
void SetConstantLearningRate(double learning_rate, proto::Optimizer* optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_COMPLETE_OPTIMIZER_H_
