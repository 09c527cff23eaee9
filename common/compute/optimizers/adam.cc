#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
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

constexpr absl::string_view kAdamRuleName = "adam";

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AdamLoop(
    const AdamCoefficients<T>& coefficients, const UpdateArrays<T>& arrays) {
  if (coefficients.amsgrad) {
    UpdateEach<AdamUpdate<true>>(coefficients, arrays);
  } else {
    UpdateEach<AdamUpdate<false>>(coefficients, arrays);
  }
}

MUSTER_MULTIVERSION void ApplyAdam(const AdamCoefficients<float>& coefficients,
                                   const UpdateArrays<float>& arrays) {
  AdamLoop(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyAdam(const AdamCoefficients<double>& coefficients,
                                   const UpdateArrays<double>& arrays) {
  AdamLoop(coefficients, arrays);
}

struct AdamMath {
  proto::Optimizer::Adam adam;
  double weight_decay;
  absl::string_view function() const {
    return adam.amsgrad() ? "adam_amsgrad" : "adam";
  }

  // The powers are computed in the precision of the variable, as in Keras. The
  // rounding of beta_2 is visible because 1 - beta_2^t cancels.
  template <typename T>
  AdamCoefficients<T> At(int64_t step, float learning_rate) const {
    const T rate = static_cast<T>(learning_rate);
    const T t = static_cast<T>(step + 1);
    const T power_1 = std::pow(static_cast<T>(adam.beta_1()), t);
    const T power_2 = std::pow(static_cast<T>(adam.beta_2()), t);
    return {.rate = rate,
            .weight_decay = static_cast<T>(weight_decay),
            .alpha = rate * std::sqrt(1 - power_2) / (1 - power_1),
            .one_minus_beta_1 = static_cast<T>(1 - adam.beta_1()),
            .one_minus_beta_2 = static_cast<T>(1 - adam.beta_2()),
            .epsilon = static_cast<T>(adam.epsilon()),
            .amsgrad = adam.amsgrad()};
  }
  template <typename T>
  static void Apply(const AdamCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyAdam(coefficients, arrays);
  }
};

void SetOptions(const AdamOptions& options, proto::Optimizer::Adam* adam,
                proto::Optimizer* optimizer) {
  SetLearningRate(options.learning_rate, adam, optimizer);
  adam->set_beta_1(options.beta_1);
  adam->set_beta_2(options.beta_2);
  adam->set_epsilon(options.epsilon);
  adam->set_amsgrad(options.amsgrad);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Adam& adam =
      optimizer.has_adamw() ? optimizer.adamw() : optimizer.adam();
  // With a beta of 1, the running means would not change, and the bias
  // correction would divide by 0.
  constexpr double kBetaMax = 1 - 1e-7;
  RETURN_IF_ERROR(CheckInRange("beta_1", adam.beta_1(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckInRange("beta_2", adam.beta_2(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", adam.epsilon()));
  std::vector<SlotSpec> slots = {{.name = "momentum"}, {.name = "velocity"}};
  if (adam.amsgrad()) slots.push_back({.name = "velocity_hat"});
  return std::make_unique<FusedRule<AdamMath>>(
      kAdamRuleName, std::move(learning_rate), std::move(slots),
      AdamMath{.adam = adam, .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Adam(const AdamOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  SetOptions(options, optimizer.mutable_adam(), &optimizer);
  return optimizer;
}

Optimizer AdamW(const AdamOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  SetOptions(options, optimizer.mutable_adamw(), &optimizer);
  return optimizer;
}

const OptimizerKind kAdamKind = {
    .rule_case = proto::Optimizer::kAdam,
    .rule_name = kAdamRuleName,
    .keras_class = "Adam",
    .defaults = [] { return Adam(); },
    .make_rule = MakeAdam,
};

const OptimizerKind kAdamWKind = {
    .rule_case = proto::Optimizer::kAdamw,
    .rule_name = kAdamRuleName,
    .keras_class = "AdamW",
    .defaults = [] { return AdamW({}, {.weight_decay = 0.004}); },
    .make_rule = MakeAdam,
};

}  // namespace muster
