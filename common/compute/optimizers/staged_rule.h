#ifndef COMMON_COMPUTE_OPTIMIZERS_STAGED_RULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_STAGED_RULE_H_

#include <cstdint>
#include <memory>

#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// The slots that MakeStagedRule() adds.
inline constexpr char kGradientAccumulatorSlot[] = "gradient_accumulator";
inline constexpr char kAverageSlot[] = "average";

// Returns a rule that wraps `rule` in the stages that `optimizer` selects. The
// mean of `gradients_per_step` gradients is one gradient for all stages.
// `optimizer` must be complete (CompleteOptimizer()). The stages are:
//
//   gradient_accumulation_steps  before `rule`: adds gradients up in the slot
//                                "gradient_accumulator", and lets `rule` apply
//                                the mean of this many gradients
//   use_ema                      after `rule`: keeps the moving average of the
//                                variable in the slot "average", and assigns it
//                                to the variable every ema_overwrite_frequency
//                                updates
//
// The slots are those of `rule`, followed by those of the stages.
// `learning_rate` counts gradients; the learning rate of `rule` counts updates.
// Source: keras.optimizers.Optimizer of Keras 3.
std::unique_ptr<UpdateRule> MakeStagedRule(std::unique_ptr<UpdateRule> rule,
                                           LearningRate learning_rate,
                                           const proto::Optimizer& optimizer,
                                           int64_t gradients_per_step);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_STAGED_RULE_H_
