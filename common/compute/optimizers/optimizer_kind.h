#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_KIND_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_KIND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"
#include "proto/optimizer.pb.h"

namespace muster {

// A row of the table of optimizers (optimizers.h): what the rest of the tree
// knows of one. Its file defines it beside the rule.
struct OptimizerKind {
  proto::Optimizer::RuleCase rule_case;
  // UpdateRule::name(). Kinds that share a rule, as Adam and AdamW do, share
  // their slots: a checkpoint of one restores into the other.
  absl::string_view rule_name;
  // keras.optimizers.<keras_class>. Keras' config has the names of the fields
  // of the rule's message.
  absl::string_view keras_class;
  // The optimizer with every hyperparameter at its default.
  proto::Optimizer (*defaults)();
  // `optimizer` is complete (CompleteOptimizer()) and of this kind.
  //   kInvalidArgument  a hyperparameter is out of range; names it
  absl::StatusOr<std::unique_ptr<UpdateRule>> (*make_rule)(
      const proto::Optimizer& optimizer, LearningRate learning_rate);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_KIND_H_
