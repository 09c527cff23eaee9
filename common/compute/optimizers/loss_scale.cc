#include "common/compute/optimizers/loss_scale.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/update.h"
#include "common/compute/optimizers/fused_rule.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/status_macros.h"
#include "proto/optimizer.pb.h"

namespace muster {

Optimizer LossScaleOptimizer(const Optimizer& inner_optimizer,
                             const LossScaleOptions& options) {
  proto::Optimizer optimizer = inner_optimizer.message();
  proto::Optimizer::LossScale* const scale = optimizer.mutable_loss_scale();
  scale->set_initial_scale(options.initial_scale);
  scale->set_dynamic_growth_steps(options.dynamic_growth_steps);
  return optimizer;
}

namespace {

struct LossScaleMath {
  int64_t growth_steps;
  absl::string_view function() const { return "loss_scale"; }

  template <typename T>
  LossScaleCoefficients<T> At(int64_t, float) const {
    return {.growth_steps = static_cast<T>(growth_steps)};
  }
  template <typename T>
  static void Apply(const LossScaleCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    UpdateEach<LossScaleUpdate>(coefficients, arrays);
  }
};

}  // namespace

absl::StatusOr<proto::Optimizer::LossScale> CompleteLossScale(
    const proto::Optimizer::LossScale& scale) {
  const LossScaleOptions defaults;
  proto::Optimizer::LossScale complete;
  complete.set_initial_scale(defaults.initial_scale);
  complete.set_dynamic_growth_steps(defaults.dynamic_growth_steps);
  complete.MergeFrom(scale);
  const auto initial_scale = static_cast<float>(complete.initial_scale());
  if (!std::isfinite(initial_scale) || !(initial_scale > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss_scale: initial_scale is ", complete.initial_scale(),
                     "; expected a number above 0 that float32 can hold"));
  }
  if (complete.dynamic_growth_steps() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss_scale: dynamic_growth_steps is ",
                     complete.dynamic_growth_steps(), "; expected at least 1"));
  }
  return complete;
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLossScaleRule(
    const proto::Optimizer::LossScale& scale) {
  ASSIGN_OR_RETURN(const proto::Optimizer::LossScale complete,
                   CompleteLossScale(scale));
  // The rule does not use the learning rate.
  ASSIGN_OR_RETURN(LearningRate learning_rate, LearningRate::Create(1));
  return std::make_unique<FusedRule<LossScaleMath>>(
      kLossScaleRule, std::move(learning_rate),
      std::vector<SlotSpec>{{.name = kLossScaleCounterSlot}},
      LossScaleMath{.growth_steps = complete.dynamic_growth_steps()});
}

Optimizer OptimizerOfLossScale(const proto::Optimizer& optimizer) {
  proto::Optimizer of_scale;
  *of_scale.mutable_loss_scale() = optimizer.loss_scale();
  return of_scale;
}

}  // namespace muster
