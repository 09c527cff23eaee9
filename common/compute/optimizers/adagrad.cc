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

constexpr absl::string_view kAdagradRuleName = "adagrad";

MUSTER_MULTIVERSION void ApplyAdagrad(
    const AdagradCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  UpdateEach<AdagradUpdate>(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyAdagrad(
    const AdagradCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  UpdateEach<AdagradUpdate>(coefficients, arrays);
}

struct AdagradMath {
  double epsilon;
  double weight_decay;
  absl::string_view function() const { return "adagrad"; }

  template <typename T>
  AdagradCoefficients<T> At(int64_t, float learning_rate) const {
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .epsilon = static_cast<T>(epsilon)};
  }
  template <typename T>
  static void Apply(const AdagradCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyAdagrad(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdagrad(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Adagrad& adagrad = optimizer.adagrad();
  RETURN_IF_ERROR(CheckNotNegative("initial_accumulator_value",
                                   adagrad.initial_accumulator_value()));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", adagrad.epsilon()));
  std::vector<SlotSpec> slots = {
      {.name = "accumulator",
       .initial_value = adagrad.initial_accumulator_value()}};
  return std::make_unique<FusedRule<AdagradMath>>(
      kAdagradRuleName, std::move(learning_rate), std::move(slots),
      AdagradMath{.epsilon = adagrad.epsilon(),
                  .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Adagrad(const AdagradOptions& options,
                  const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const adagrad = optimizer.mutable_adagrad();
  SetLearningRate(options.learning_rate, adagrad, &optimizer);
  adagrad->set_initial_accumulator_value(options.initial_accumulator_value);
  adagrad->set_epsilon(options.epsilon);
  return optimizer;
}

const OptimizerKind kAdagradKind = {
    .rule_case = proto::Optimizer::kAdagrad,
    .rule_name = kAdagradRuleName,
    .keras_class = "Adagrad",
    .defaults = [] { return Adagrad(); },
    .make_rule = MakeAdagrad,
};

}  // namespace muster
