#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

constexpr absl::string_view kFtrlRuleName = "ftrl";

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FtrlLoop(
    const FtrlCoefficients<T>& coefficients, const UpdateArrays<T>& arrays) {
  if (coefficients.exponent == T{0.5}) {
    UpdateEach<FtrlUpdate<true>>(coefficients, arrays);
  } else {
    UpdateEach<FtrlUpdate<false>>(coefficients, arrays);
  }
}

MUSTER_MULTIVERSION void ApplyFtrl(const FtrlCoefficients<float>& coefficients,
                                   const UpdateArrays<float>& arrays) {
  FtrlLoop(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyFtrl(const FtrlCoefficients<double>& coefficients,
                                   const UpdateArrays<double>& arrays) {
  FtrlLoop(coefficients, arrays);
}

struct FtrlMath {
  proto::Optimizer::Ftrl ftrl;
  double weight_decay;
  absl::string_view function() const {
    return ftrl.learning_rate_power() == -0.5 ? "ftrl" : "ftrl_power";
  }

  template <typename T>
  FtrlCoefficients<T> At(int64_t, float learning_rate) const {
    const T rate = static_cast<T>(learning_rate);
    const T l2 = static_cast<T>(ftrl.l2_regularization_strength()) +
                 static_cast<T>(ftrl.beta()) / (2 * rate);
    return {.rate = rate,
            .weight_decay = static_cast<T>(weight_decay),
            .exponent = static_cast<T>(-ftrl.learning_rate_power()),
            .l1 = static_cast<T>(ftrl.l1_regularization_strength()),
            .twice_l2 = 2 * l2,
            .twice_l2_shrinkage = static_cast<T>(
                2 * ftrl.l2_shrinkage_regularization_strength())};
  }
  template <typename T>
  static void Apply(const FtrlCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyFtrl(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeFtrl(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Ftrl& ftrl = optimizer.ftrl();
  if (!(std::isfinite(ftrl.learning_rate_power()) &&
        ftrl.learning_rate_power() <= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("learning_rate_power is ", ftrl.learning_rate_power(),
                     "; expected a finite number, 0 or less"));
  }
  if (learning_rate.is_number() && learning_rate.At(0) == 0) {
    return absl::InvalidArgumentError(
        "learning_rate is 0; the rule divides by it");
  }
  RETURN_IF_ERROR(CheckNotNegative("initial_accumulator_value",
                                   ftrl.initial_accumulator_value()));
  RETURN_IF_ERROR(CheckNotNegative("l1_regularization_strength",
                                   ftrl.l1_regularization_strength()));
  RETURN_IF_ERROR(CheckNotNegative("l2_regularization_strength",
                                   ftrl.l2_regularization_strength()));
  RETURN_IF_ERROR(
      CheckNotNegative("l2_shrinkage_regularization_strength",
                       ftrl.l2_shrinkage_regularization_strength()));
  RETURN_IF_ERROR(CheckNotNegative("beta", ftrl.beta()));
  std::vector<SlotSpec> slots = {
      {.name = "accumulator",
       .initial_value = ftrl.initial_accumulator_value()},
      {.name = "linear"}};
  return std::make_unique<FusedRule<FtrlMath>>(
      kFtrlRuleName, std::move(learning_rate), std::move(slots),
      FtrlMath{.ftrl = ftrl, .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Ftrl(const FtrlOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const ftrl = optimizer.mutable_ftrl();
  SetLearningRate(options.learning_rate, ftrl, &optimizer);
  ftrl->set_learning_rate_power(options.learning_rate_power);
  ftrl->set_initial_accumulator_value(options.initial_accumulator_value);
  ftrl->set_l1_regularization_strength(options.l1_regularization_strength);
  ftrl->set_l2_regularization_strength(options.l2_regularization_strength);
  ftrl->set_l2_shrinkage_regularization_strength(
      options.l2_shrinkage_regularization_strength);
  ftrl->set_beta(options.beta);
  return optimizer;
}

const OptimizerKind kFtrlKind = {
    .rule_case = proto::Optimizer::kFtrl,
    .rule_name = kFtrlRuleName,
    .keras_class = "Ftrl",
    .defaults = [] { return Ftrl(); },
    .make_rule = MakeFtrl,
};

}  // namespace muster
