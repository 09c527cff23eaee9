#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_MESSAGE_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_MESSAGE_H_

#include <variant>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// For factory functions of optimizers: returns an optimizer with these options
// and no rule.
proto::Optimizer WithOptions(const OptimizerOptions& options);

// Sets the schedule, and with it the learning rate.
void SetSchedule(const LearningRateSchedule& schedule,
                 proto::Optimizer* optimizer);

// For factory functions of optimizers: sets the learning rate. A number is a
// field of `rule`, the message of `optimizer` with the hyperparameters. A
// schedule is a field of `optimizer`.
template <typename Rule>
void SetLearningRate(const LearningRateOption& learning_rate, Rule* rule,
                     proto::Optimizer* optimizer) {
  if (const double* number = std::get_if<double>(&learning_rate.value())) {
    rule->set_learning_rate(*number);
  } else {
    SetSchedule(std::get<LearningRateSchedule>(learning_rate.value()),
                optimizer);
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_MESSAGE_H_
