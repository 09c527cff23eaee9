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

constexpr absl::string_view kNadamRuleName = "nadam";

MUSTER_MULTIVERSION void ApplyNadam(
    const NadamCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  UpdateEach<NadamUpdate>(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyNadam(
    const NadamCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  UpdateEach<NadamUpdate>(coefficients, arrays);
}

constexpr double kDecay = 0.96;

// beta_1 * (1 - 0.96^t / 2)
double MomentumAt(double beta_1, int64_t t) {
  return beta_1 * (1 - 0.5 * std::pow(kDecay, static_cast<double>(t)));
}

struct NadamMath {
  proto::Optimizer::Nadam nadam;
  double weight_decay;
  absl::string_view function() const { return "nadam"; }

  template <typename T>
  NadamCoefficients<T> At(int64_t step, float learning_rate) const {
    const int64_t t = step + 1;
    const double beta_1 = nadam.beta_1();
    const double product = NadamMomentumProduct(beta_1, t);
    const double now = MomentumAt(beta_1, t);
    const double next = MomentumAt(beta_1, t + 1);
    // The power is computed in the precision of the variable, as in Keras: the
    // rounding is visible because 1 - beta_2^t cancels.
    const T power_2 =
        std::pow(static_cast<T>(nadam.beta_2()), static_cast<T>(t));
    return {.rate = static_cast<T>(learning_rate),
            .weight_decay = static_cast<T>(weight_decay),
            .one_minus_beta_1 = static_cast<T>(1 - beta_1),
            .one_minus_beta_2 = 1 - static_cast<T>(nadam.beta_2()),
            .momentum_share = static_cast<T>(next / (1 - product * next)),
            .gradient_share = static_cast<T>((1 - now) / (1 - product)),
            .velocity_correction = 1 - power_2,
            .epsilon = static_cast<T>(nadam.epsilon())};
  }
  template <typename T>
  static void Apply(const NadamCoefficients<T>& coefficients,
                    const UpdateArrays<T>& arrays) {
    ApplyNadam(coefficients, arrays);
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeNadam(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Nadam& nadam = optimizer.nadam();
  // With a beta of 1, the running means would not change, and the bias
  // correction would divide by 0.
  constexpr double kBetaMax = 1 - 1e-7;
  RETURN_IF_ERROR(CheckInRange("beta_1", nadam.beta_1(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckInRange("beta_2", nadam.beta_2(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", nadam.epsilon()));
  return std::make_unique<FusedRule<NadamMath>>(
      kNadamRuleName, std::move(learning_rate),
      std::vector<SlotSpec>{{.name = "momentum"}, {.name = "velocity"}},
      NadamMath{.nadam = nadam, .weight_decay = optimizer.weight_decay()});
}

}  // namespace

double NadamMomentumProduct(double beta_1, int64_t t) {
  // From t = 1000 on, 0.96^t / 2 is less than the rounding of 1 - 0.96^t / 2.
  constexpr int64_t kTermCountMax = 1000;
  double product = std::pow(beta_1, static_cast<double>(t));
  double decay = 1;
  for (int64_t i = 1; i <= std::min(t, kTermCountMax); ++i) {
    decay *= kDecay;
    product *= 1 - 0.5 * decay;
  }
  return product;
}

Optimizer Nadam(const NadamOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const nadam = optimizer.mutable_nadam();
  SetLearningRate(options.learning_rate, nadam, &optimizer);
  nadam->set_beta_1(options.beta_1);
  nadam->set_beta_2(options.beta_2);
  nadam->set_epsilon(options.epsilon);
  return optimizer;
}

const OptimizerKind kNadamKind = {
    .rule_case = proto::Optimizer::kNadam,
    .rule_name = kNadamRuleName,
    .keras_class = "Nadam",
    .defaults = [] { return Nadam(); },
    .make_rule = MakeNadam,
};

}  // namespace muster
