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

constexpr absl::string_view kAdamaxRuleName = "adamax";

MUSTER_MULTIVERSION void ApplyAdamax(
    const AdamaxCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  UpdateEach<AdamaxUpdate>(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyAdamax(
    const AdamaxCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  UpdateEach<AdamaxUpdate>(coefficients, arrays);
}

struct AdamaxMath {
  proto::Optimizer::Adamax adamax;
  double weight_decay;
  absl::string_view function() const { return "adamax"; }

  template <typename T>
  AdamaxCoefficients<T> At(int64_t step, float learning_rate) const {
    const T t = static_cast<T>(step + 1);
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .one_minus_beta_1 = static_cast<T>(1 - adamax.beta_1()),
            .beta_2 = static_cast<T>(adamax.beta_2()),
            .correction = 1 - std::pow(static_cast<T>(adamax.beta_1()), t),
            .epsilon = static_cast<T>(adamax.epsilon())};
  }
  template <typename T>
  static void Apply(const AdamaxCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyAdamax(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdamax(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Adamax& adamax = optimizer.adamax();
  // With a beta_1 of 1, the bias correction would divide by 0.
  constexpr double kBetaMax = 1 - 1e-7;
  RETURN_IF_ERROR(CheckInRange("beta_1", adamax.beta_1(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckInRange("beta_2", adamax.beta_2(), 0, 1));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", adamax.epsilon()));
  return std::make_unique<FusedRule<AdamaxMath>>(
      kAdamaxRuleName, std::move(learning_rate),
      std::vector<SlotSpec>{{.name = "momentum"}, {.name = "norm"}},
      AdamaxMath{.adamax = adamax, .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Adamax(const AdamaxOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const adamax = optimizer.mutable_adamax();
  SetLearningRate(options.learning_rate, adamax, &optimizer);
  adamax->set_beta_1(options.beta_1);
  adamax->set_beta_2(options.beta_2);
  adamax->set_epsilon(options.epsilon);
  return optimizer;
}

const OptimizerKind kAdamaxKind = {
    .rule_case = proto::Optimizer::kAdamax,
    .rule_name = kAdamaxRuleName,
    .keras_class = "Adamax",
    .defaults = [] { return Adamax(); },
    .make_rule = MakeAdamax,
};

}  // namespace muster
