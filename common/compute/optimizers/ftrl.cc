#include "common/compute/optimizers/ftrl.h"

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
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/fused_rule.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kRuleName = "ftrl";

template <typename T>
struct FtrlCoefficients {
  T rate;
  T weight_decay;
  T exponent;  // -learning_rate_power
  T l1;
  T twice_l2;  // Includes the term of beta.
  T twice_l2_shrinkage;
};

// The default exponent is a square root, which is vectorized; pow() is not.
template <bool kSquareRoot, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FtrlLoop(
    const FtrlCoefficients<T>& c, const UpdateArrays<T>& arrays) {
  const T* __restrict gradient = arrays.gradient;
  T* __restrict variable = arrays.variable;
  T* __restrict accumulator = arrays.slots[0];
  T* __restrict linear = arrays.slots[1];
  for (int64_t i = 0; i < arrays.count; ++i) {
    const T g = gradient[i];
    const T w = variable[i] - variable[i] * c.weight_decay * c.rate;
    const T old_sum = accumulator[i];
    const T new_sum = old_sum + g * g;
    const T old_power =
        kSquareRoot ? std::sqrt(old_sum) : std::pow(old_sum, c.exponent);
    const T new_power =
        kSquareRoot ? std::sqrt(new_sum) : std::pow(new_sum, c.exponent);
    const T z = linear[i] + ((g + c.twice_l2_shrinkage * w) -
                             (new_power - old_power) / c.rate * w);
    const T above = z > -c.l1 ? z : -c.l1;
    const T clipped = above < c.l1 ? above : c.l1;
    accumulator[i] = new_sum;
    linear[i] = z;
    variable[i] = (clipped - z) / (new_power / c.rate + c.twice_l2);
  }
}

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FtrlLoops(
    const FtrlCoefficients<T>& coefficients, const UpdateArrays<T>& arrays) {
  const FtrlCoefficients<T> c = coefficients;
  if (c.exponent == T{0.5}) {
    FtrlLoop<true>(c, arrays);
  } else {
    FtrlLoop<false>(c, arrays);
  }
}

MUSTER_MULTIVERSION void ApplyFtrl(const FtrlCoefficients<float>& coefficients,
                                   const UpdateArrays<float>& arrays) {
  FtrlLoops(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyFtrl(const FtrlCoefficients<double>& coefficients,
                                   const UpdateArrays<double>& arrays) {
  FtrlLoops(coefficients, arrays);
}

struct FtrlMath {
  proto::Optimizer::Ftrl ftrl;
  double weight_decay;

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
      kRuleName, std::move(learning_rate), std::move(slots),
      FtrlMath{.ftrl = ftrl, .weight_decay = optimizer.weight_decay()});
}

}  // namespace

proto::Optimizer Ftrl(const FtrlOptions& options,
                      const OptimizerOptions& shared) {
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
    .rule_name = kRuleName,
    .keras_class = "Ftrl",
    .defaults = [] { return Ftrl(); },
    .make_rule = MakeFtrl,
};

}  // namespace muster
