#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_MESSAGE_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_MESSAGE_H_

#include <variant>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer_options.h"
#include "proto/optimizer.pb.h"

namespace muster {

// For factory functions of optimizers: returns an optimizer with these options
// and no rule.
proto::Optimizer WithOptions(const OptimizerOptions& options);

// For factory functions of optimizers: sets the learning rate. A number is a
// field of `rule`, the message of `optimizer` with the hyperparameters. A
// schedule is a field of `optimizer`.
template <typename Rule>
void SetLearningRate(const LearningRateOption& learning_rate, Rule* rule,
                     proto::Optimizer* optimizer) {
  if (const double* number = std::get_if<double>(&learning_rate.value())) {
    rule->set_learning_rate(*number);
  } else {
    *optimizer->mutable_learning_rate_schedule() =
        std::get<LearningRateSchedule>(learning_rate.value()).message();
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_MESSAGE_H_
