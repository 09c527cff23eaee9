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

constexpr absl::string_view kSgdRuleName = "sgd";

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SgdLoop(
    const SgdCoefficients<T>& coefficients, const UpdateArrays<T>& arrays) {
  if (coefficients.momentum == 0) {
    UpdateEach<SgdUpdate<false>>(coefficients, arrays);
  } else {
    UpdateEach<SgdUpdate<true>>(coefficients, arrays);
  }
}

MUSTER_MULTIVERSION void ApplySgd(const SgdCoefficients<float>& coefficients,
                                  const UpdateArrays<float>& arrays) {
  SgdLoop(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplySgd(const SgdCoefficients<double>& coefficients,
                                  const UpdateArrays<double>& arrays) {
  SgdLoop(coefficients, arrays);
}

struct SgdMath {
  double momentum;
  bool nesterov;
  double weight_decay;
  absl::string_view function() const {
    return momentum == 0 ? "sgd" : "sgd_momentum";
  }

  template <typename T>
  SgdCoefficients<T> At(int64_t, float learning_rate) const {
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .momentum = static_cast<T>(momentum),
            .nesterov = nesterov};
  }
  template <typename T>
  static void Apply(const SgdCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplySgd(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgd(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Sgd& sgd = optimizer.sgd();
  RETURN_IF_ERROR(CheckInRange("momentum", sgd.momentum(), 0, 1));
  std::vector<SlotSpec> slots;
  if (sgd.momentum() != 0) slots.push_back({.name = "momentum"});
  return std::make_unique<FusedRule<SgdMath>>(
      kSgdRuleName, std::move(learning_rate), std::move(slots),
      SgdMath{.momentum = sgd.momentum(),
              .nesterov = sgd.nesterov(),
              .weight_decay = optimizer.weight_decay()});
}

}  // namespace

Optimizer Sgd(const SgdOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const sgd = optimizer.mutable_sgd();
  SetLearningRate(options.learning_rate, sgd, &optimizer);
  sgd->set_momentum(options.momentum);
  sgd->set_nesterov(options.nesterov);
  return optimizer;
}

const OptimizerKind kSgdKind = {
    .rule_case = proto::Optimizer::kSgd,
    .rule_name = kSgdRuleName,
    .keras_class = "SGD",
    .defaults = [] { return Sgd(); },
    .make_rule = MakeSgd,
};

}  // namespace muster
