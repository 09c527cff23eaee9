#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/update.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/fused_rule.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizer_message.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kScheduleFreeAdamWRuleName = "schedule_free_adamw";

MUSTER_MULTIVERSION void ApplyScheduleFreeAdamW(
    const ScheduleFreeAdamWCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  UpdateEach<ScheduleFreeAdamWUpdate>(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyScheduleFreeAdamW(
    const ScheduleFreeAdamWCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  UpdateEach<ScheduleFreeAdamWUpdate>(coefficients, arrays);
}

struct ScheduleFreeAdamWMath {
  proto::Optimizer::ScheduleFreeAdamW adamw;
  double weight_decay;
  absl::string_view function() const { return "schedule_free_adamw"; }

  // The power is computed in the precision of the variable, as in Keras: the
  // rounding is visible because 1 - beta_2^t cancels.
  template <typename T>
  ScheduleFreeAdamWCoefficients<T> At(int64_t step, float learning_rate) const {
    const T t = static_cast<T>(step + 1);
    const T rate = static_cast<T>(learning_rate);
    const T beta_2 = static_cast<T>(adamw.beta_2());
    T warmed_up = rate;
    if (adamw.warmup_steps() > 0) {
      warmed_up *= std::min(t / static_cast<T>(adamw.warmup_steps()), T(1));
    }
    return {.rate = rate,
            .weight_decay = static_cast<T>(weight_decay),
            .warmed_up_rate = warmed_up,
            .beta_1 = static_cast<T>(adamw.beta_1()),
            .one_minus_beta_2 = 1 - beta_2,
            .velocity_correction = 1 - std::pow(beta_2, t),
            .epsilon = static_cast<T>(adamw.epsilon()),
            .share = 1 / t};
  }
  template <typename T>
  static void Apply(const ScheduleFreeAdamWCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyScheduleFreeAdamW(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeScheduleFreeAdamW(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::ScheduleFreeAdamW& adamw =
      optimizer.schedule_free_adamw();
  // An update divides by beta_1. With a beta_2 of 1 the bias correction would
  // divide by 0.
  constexpr double kTiny = 1e-7;
  RETURN_IF_ERROR(CheckInRange("beta_1", adamw.beta_1(), kTiny, 1));
  RETURN_IF_ERROR(CheckInRange("beta_2", adamw.beta_2(), 0, 1 - kTiny));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", adamw.epsilon()));
  RETURN_IF_ERROR(CheckNotNegative("warmup_steps",
                                   static_cast<double>(adamw.warmup_steps())));
  return std::make_unique<FusedRule<ScheduleFreeAdamWMath>>(
      kScheduleFreeAdamWRuleName, std::move(learning_rate),
      std::vector<SlotSpec>{{.name = "z", .starts_as_variable = true},
                            {.name = "velocity"}},
      ScheduleFreeAdamWMath{.adamw = adamw,
                            .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer ScheduleFreeAdamW(const ScheduleFreeAdamWOptions& options,
                            const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const adamw = optimizer.mutable_schedule_free_adamw();
  SetLearningRate(options.learning_rate, adamw, &optimizer);
  adamw->set_beta_1(options.beta_1);
  adamw->set_beta_2(options.beta_2);
  adamw->set_epsilon(options.epsilon);
  adamw->set_warmup_steps(options.warmup_steps);
  return optimizer;
}

const OptimizerKind kScheduleFreeAdamWKind = {
    .rule_case = proto::Optimizer::kScheduleFreeAdamw,
    .rule_name = kScheduleFreeAdamWRuleName,
    .keras_class = "ScheduleFreeAdamW",
    .defaults = [] { return ScheduleFreeAdamW(); },
    .make_rule = MakeScheduleFreeAdamW,
};

}  // namespace muster
