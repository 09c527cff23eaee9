#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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

constexpr absl::string_view kLionRuleName = "lion";

MUSTER_MULTIVERSION void ApplyLion(const LionCoefficients<float>& coefficients,
                                   const UpdateArrays<float>& arrays) {
  UpdateEach<LionUpdate>(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyLion(const LionCoefficients<double>& coefficients,
                                   const UpdateArrays<double>& arrays) {
  UpdateEach<LionUpdate>(coefficients, arrays);
}

struct LionMath {
  double beta_1;
  double beta_2;
  double weight_decay;
  absl::string_view function() const { return "lion"; }

  template <typename T>
  LionCoefficients<T> At(int64_t, float learning_rate) const {
    // Keras rounds the betas to the variable's dtype before it subtracts them.
    const T rounded_1 = static_cast<T>(beta_1);
    const T rounded_2 = static_cast<T>(beta_2);
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .beta_1 = rounded_1,
            .beta_2 = rounded_2,
            .one_minus_beta_1 = 1 - rounded_1,
            .one_minus_beta_2 = 1 - rounded_2};
  }
  template <typename T>
  static void Apply(const LionCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyLion(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLion(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Lion& lion = optimizer.lion();
  RETURN_IF_ERROR(CheckInRange("beta_1", lion.beta_1(), 0, 1));
  if (lion.beta_1() == 0) {
    return absl::InvalidArgumentError(
        "beta_1 is 0; expected more than 0, because without momentum only the "
        "sign of each gradient would count");
  }
  RETURN_IF_ERROR(CheckInRange("beta_2", lion.beta_2(), 0, 1));
  return std::make_unique<FusedRule<LionMath>>(
      kLionRuleName, std::move(learning_rate),
      std::vector<SlotSpec>{{.name = "momentum"}},
      LionMath{.beta_1 = lion.beta_1(),
               .beta_2 = lion.beta_2(),
               .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Lion(const LionOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const lion = optimizer.mutable_lion();
  SetLearningRate(options.learning_rate, lion, &optimizer);
  lion->set_beta_1(options.beta_1);
  lion->set_beta_2(options.beta_2);
  return optimizer;
}

const OptimizerKind kLionKind = {
    .rule_case = proto::Optimizer::kLion,
    .rule_name = kLionRuleName,
    .keras_class = "Lion",
    .defaults = [] { return Lion(); },
    .make_rule = MakeLion,
};

}  // namespace muster
