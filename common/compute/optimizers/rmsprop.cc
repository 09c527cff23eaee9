#include "common/compute/optimizers/rmsprop.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/base/attributes.h"
#include "common/compute/optimizers/fused_rule.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

template <typename T>
struct RmsPropCoefficients {
  T rate;
  T weight_decay;
  T rho;
  T one_minus_rho;
  T momentum;
  T epsilon;
  bool centered;
};

template <bool kCentered, bool kMomentum, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void RmsPropLoop(
    const RmsPropCoefficients<T>& c, const UpdateArrays<T>& arrays) {
  const T* __restrict gradient = arrays.gradient;
  T* __restrict variable = arrays.variable;
  T* __restrict velocity = arrays.slots[0];
  T* __restrict momentum = kMomentum ? arrays.slots[1] : nullptr;
  T* __restrict average = kCentered ? arrays.slots[kMomentum ? 2 : 1] : nullptr;
  for (int64_t i = 0; i < arrays.count; ++i) {
    const T g = gradient[i];
    const T v = c.rho * velocity[i] + c.one_minus_rho * (g * g);
    const T w = variable[i] - variable[i] * c.weight_decay * c.rate;
    velocity[i] = v;
    T denominator = v + c.epsilon;
    if constexpr (kCentered) {
      const T mean = c.rho * average[i] + c.one_minus_rho * g;
      average[i] = mean;
      denominator = v - mean * mean + c.epsilon;
    }
    T change = c.rate * g / std::sqrt(denominator);
    if constexpr (kMomentum) {
      change = c.momentum * momentum[i] + change;
      momentum[i] = change;
    }
    variable[i] = w - change;
  }
}

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void RmsPropLoops(
    const RmsPropCoefficients<T>& coefficients, const UpdateArrays<T>& arrays) {
  const RmsPropCoefficients<T> c = coefficients;
  if (c.centered) {
    if (c.momentum > 0) {
      RmsPropLoop<true, true>(c, arrays);
    } else {
      RmsPropLoop<true, false>(c, arrays);
    }
  } else if (c.momentum > 0) {
    RmsPropLoop<false, true>(c, arrays);
  } else {
    RmsPropLoop<false, false>(c, arrays);
  }
}

MUSTER_MULTIVERSION void ApplyRmsProp(
    const RmsPropCoefficients<float>& coefficients,
    const UpdateArrays<float>& arrays) {
  RmsPropLoops(coefficients, arrays);
}
MUSTER_MULTIVERSION void ApplyRmsProp(
    const RmsPropCoefficients<double>& coefficients,
    const UpdateArrays<double>& arrays) {
  RmsPropLoops(coefficients, arrays);
}

struct RmsPropMath {
  proto::Optimizer::RmsProp rmsprop;
  double weight_decay;

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

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRmsProp(
    const proto::Optimizer& optimizer) {
  const proto::Optimizer::RmsProp& rmsprop = optimizer.rmsprop();
  RETURN_IF_ERROR(CheckInRange("rho", rmsprop.rho(), 0, 1));
  RETURN_IF_ERROR(CheckInRange("momentum", rmsprop.momentum(), 0, 1));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", rmsprop.epsilon()));
  std::vector<SlotSpec> slots = {{.name = "velocity"}};
  if (rmsprop.momentum() > 0) slots.push_back({.name = "momentum"});
  if (rmsprop.centered()) slots.push_back({.name = "average_gradient"});
  return std::make_unique<FusedRule<RmsPropMath>>(
      "rmsprop", optimizer.learning_rate(), std::move(slots),
      RmsPropMath{.rmsprop = rmsprop,
                  .weight_decay = optimizer.weight_decay()});
}

}  // namespace muster
