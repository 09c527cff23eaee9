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

constexpr absl::string_view kAdadeltaRuleName = "adadelta";

MUSTER_MULTIVERSION void ApplyAdadelta(
    const AdadeltaCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  UpdateEach<AdadeltaUpdate>(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyAdadelta(
    const AdadeltaCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  UpdateEach<AdadeltaUpdate>(coefficients, arrays);
}

struct AdadeltaMath {
  proto::Optimizer::Adadelta adadelta;
  double weight_decay;
  absl::string_view function() const { return "adadelta"; }

  template <typename T>
  AdadeltaCoefficients<T> At(int64_t, float learning_rate) const {
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .rho = static_cast<T>(adadelta.rho()),
            .one_minus_rho = static_cast<T>(1 - adadelta.rho()),
            .epsilon = static_cast<T>(adadelta.epsilon())};
  }
  template <typename T>
  static void Apply(const AdadeltaCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyAdadelta(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdadelta(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Adadelta& adadelta = optimizer.adadelta();
  RETURN_IF_ERROR(CheckInRange("rho", adadelta.rho(), 0, 1));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", adadelta.epsilon()));
  return std::make_unique<FusedRule<AdadeltaMath>>(
      kAdadeltaRuleName, std::move(learning_rate),
      std::vector<SlotSpec>{{.name = "accumulated_grad"},
                            {.name = "accumulated_delta_var"}},
      AdadeltaMath{.adadelta = adadelta,
                   .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Adadelta(const AdadeltaOptions& options,
                   const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const adadelta = optimizer.mutable_adadelta();
  SetLearningRate(options.learning_rate, adadelta, &optimizer);
  adadelta->set_rho(options.rho);
  adadelta->set_epsilon(options.epsilon);
  return optimizer;
}

const OptimizerKind kAdadeltaKind = {
    .rule_case = proto::Optimizer::kAdadelta,
    .rule_name = kAdadeltaRuleName,
    .keras_class = "Adadelta",
    .defaults = [] { return Adadelta(); },
    .make_rule = MakeAdadelta,
};

}  // namespace muster
