#include "common/compute/optimizers/update_rule.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/staged_rule.h"
#include "common/core/base/status_macros.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRule(
    const proto::Optimizer& optimizer, int64_t gradients_per_step) {
  if (gradients_per_step < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradients_per_step is ", gradients_per_step, "; expected at least 1"));
  }
  const bool is_of_loss_scale =
      optimizer.rule_case() == proto::Optimizer::RULE_NOT_SET &&
      optimizer.has_loss_scale();
  if (is_of_loss_scale) return MakeLossScaleRule(optimizer.loss_scale());
  ASSIGN_OR_RETURN(const proto::Optimizer complete,
                   CompleteOptimizer(optimizer));
  const std::optional<double> number = ConstantLearningRate(complete);
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   number.has_value() ? LearningRate::Create(*number)
                                      : LearningRate::Create(
                                            complete.learning_rate_schedule()));
  const int64_t gradients_per_update = GradientsPerUpdate(complete);
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule,
                   FindOptimizerKind(complete)->make_rule(
                       complete, learning_rate.WithGradientsPerUpdate(
                                     gradients_per_update)));
  const bool has_stages =
      gradients_per_update > 1 || complete.use_ema() || gradients_per_step > 1;
  if (!has_stages) return rule;
  return MakeStagedRule(std::move(rule), std::move(learning_rate), complete,
                        gradients_per_step);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> UpdateRule::Create(
    const Optimizer& optimizer, int64_t gradients_per_step) {
  absl::StatusOr<std::unique_ptr<UpdateRule>> rule =
      MakeRule(optimizer.message(), gradients_per_step);
  if (rule.ok()) return rule;
  return absl::Status(rule.status().code(),
                      absl::StrCat(OptimizerName(optimizer.message()), ": ",
                                   rule.status().message()));
}

}  // namespace muster
