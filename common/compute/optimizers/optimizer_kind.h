#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_KIND_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_KIND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/update_rule.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// A row of the table of optimizers (optimizers.h). The file of the rule defines
// it.
struct OptimizerKind {
  int rule_case;  // A proto::Optimizer::RuleCase: the field of the rule.
  // UpdateRule::name(). Kinds with the same rule, such as Adam and AdamW, have
  // the same slots, so a checkpoint of one restores into the other.
  absl::string_view rule_name;
  // The class in keras.optimizers. The argument names of its config are the
  // field names of the rule's message.
  absl::string_view keras_class;
  // Returns the optimizer with every hyperparameter at its default.
  Optimizer (*defaults)();
  // Creates the rule. `optimizer` must be complete (CompleteOptimizer()) and of
  // this kind.
  //   kInvalidArgument  a hyperparameter is out of range; the message names it
  absl::StatusOr<std::unique_ptr<UpdateRule>> (*make_rule)(
      const proto::Optimizer& optimizer, LearningRate learning_rate);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_KIND_H_
