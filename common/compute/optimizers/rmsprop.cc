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

constexpr absl::string_view kRmsPropRuleName = "rmsprop";

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void RmsPropLoop(
    const RmsPropCoefficients<T>& c, const UpdateArrays<T>& arrays) {
  if (c.centered) {
    if (c.momentum > 0) {
      UpdateEach<RmsPropUpdate<true, true>>(c, arrays);
    } else {
      UpdateEach<RmsPropUpdate<true, false>>(c, arrays);
    }
  } else if (c.momentum > 0) {
    UpdateEach<RmsPropUpdate<false, true>>(c, arrays);
  } else {
    UpdateEach<RmsPropUpdate<false, false>>(c, arrays);
  }
}

MUSTER_MULTIVERSION void ApplyRmsProp(
    const RmsPropCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  RmsPropLoop(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyRmsProp(
    const RmsPropCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  RmsPropLoop(coefficients, arrays);
}

struct RmsPropMath {
  proto::Optimizer::RmsProp rmsprop;
  double weight_decay;
  absl::string_view function() const {
    const bool has_momentum = rmsprop.momentum() > 0;
    if (rmsprop.centered()) {
      return has_momentum ? "rmsprop_centered_momentum" : "rmsprop_centered";
    }
    return has_momentum ? "rmsprop_momentum" : "rmsprop";
  }

  template <typename T>
  RmsPropCoefficients<T> At(int64_t, float learning_rate) const {
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .rho = static_cast<T>(rmsprop.rho()),
            .one_minus_rho = static_cast<T>(1 - rmsprop.rho()),
            .momentum = static_cast<T>(rmsprop.momentum()),
            .epsilon = static_cast<T>(rmsprop.epsilon()),
            .centered = rmsprop.centered()};
  }
  template <typename T>
  static void Apply(const RmsPropCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyRmsProp(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRmsProp(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::RmsProp& rmsprop = optimizer.rmsprop();
  RETURN_IF_ERROR(CheckInRange("rho", rmsprop.rho(), 0, 1));
  RETURN_IF_ERROR(CheckInRange("momentum", rmsprop.momentum(), 0, 1));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", rmsprop.epsilon()));
  std::vector<SlotSpec> slots = {{.name = "velocity"}};
  if (rmsprop.momentum() > 0) slots.push_back({.name = "momentum"});
  if (rmsprop.centered()) slots.push_back({.name = "average_gradient"});
  return std::make_unique<FusedRule<RmsPropMath>>(
      kRmsPropRuleName, std::move(learning_rate), std::move(slots),
      RmsPropMath{.rmsprop = rmsprop,
                  .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer RmsProp(const RmsPropOptions& options,
                  const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const rmsprop = optimizer.mutable_rmsprop();
  SetLearningRate(options.learning_rate, rmsprop, &optimizer);
  rmsprop->set_rho(options.rho);
  rmsprop->set_momentum(options.momentum);
  rmsprop->set_epsilon(options.epsilon);
  rmsprop->set_centered(options.centered);
  return optimizer;
}

const OptimizerKind kRmsPropKind = {
    .rule_case = proto::Optimizer::kRmsprop,
    .rule_name = kRmsPropRuleName,
    .keras_class = "RMSprop",
    .defaults = [] { return RmsProp(); },
    .make_rule = MakeRmsProp,
};

}  // namespace muster
