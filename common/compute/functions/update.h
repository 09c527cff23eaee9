#ifndef COMMON_COMPUTE_FUNCTIONS_UPDATE_H_
#define COMMON_COMPUTE_FUNCTIONS_UPDATE_H_

#include "common/core/base/host_device.h"

// The arithmetic of optimizers for one element, shared by the update rules of
// the host and the device kernels that update variables.
//
// A function is a struct
//
//   static constexpr int kSlotCount;             // Slots of the rule.
//   template <typename T> using Coefficients;    // The same for all elements.
//   // Returns the new value of `w`, whose gradient is `g`, and updates slots.
//   template <typename T>
//   static T Apply(const Coefficients<T>& c, T g, T w, T* slots);
//
// T is float or double. Coefficients are trivially copyable and at most
// kUpdateCoefficientBytes large.
//
// Always inlined: the host compiles its loops for several vector widths.
#define MUSTER_UPDATE_FUNCTION \
  MUSTER_HOST_DEVICE __attribute__((always_inline)) static inline

namespace muster {

inline constexpr int kUpdateCoefficientBytes = 72;

template <typename T>
struct SgdCoefficients {
  T rate;
  T weight_decay;
  T momentum;
  bool nesterov;
};

// Slots: the momentum, if there is one.
template <bool kMomentum>
struct SgdUpdate {
  static constexpr int kSlotCount = kMomentum ? 1 : 0;
  template <typename T>
  using Coefficients = SgdCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const SgdCoefficients<T>& c, T g, T w,
                                 [[maybe_unused]] T* slots) {
    const T decayed = w - w * c.weight_decay * c.rate;
    const T step = g * c.rate;
    if constexpr (!kMomentum) {
      return decayed - step;
    } else {
      const T m = slots[0] * c.momentum - step;
      slots[0] = m;
      return decayed + (c.nesterov ? m * c.momentum - step : m);
    }
  }
};

template <typename T>
struct AdamCoefficients {
  T rate;
  T weight_decay;
  T alpha;
  T one_minus_beta_1;
  T one_minus_beta_2;
  T epsilon;
  bool amsgrad;
};

// Slots: momentum, velocity; with AMSGrad the largest velocity.
template <bool kAmsgrad>
struct AdamUpdate {
  static constexpr int kSlotCount = kAmsgrad ? 3 : 2;
  template <typename T>
  using Coefficients = AdamCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const AdamCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T m = slots[0] + (g - slots[0]) * c.one_minus_beta_1;
    const T v = slots[1] + (g * g - slots[1]) * c.one_minus_beta_2;
    const T decayed = w - w * c.weight_decay * c.rate;
    slots[0] = m;
    slots[1] = v;
    T size = v;
    if constexpr (kAmsgrad) {
      size = slots[2] > v ? slots[2] : v;
      slots[2] = size;
    }
    return decayed - m * c.alpha / (sqrt(size) + c.epsilon);
  }
};

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

// Slots: velocity; the momentum and the mean gradient, if they are used.
template <bool kCentered, bool kMomentum>
struct RmsPropUpdate {
  static constexpr int kSlotCount = 1 + kMomentum + kCentered;
  template <typename T>
  using Coefficients = RmsPropCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const RmsPropCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T v = c.rho * slots[0] + c.one_minus_rho * (g * g);
    const T decayed = w - w * c.weight_decay * c.rate;
    slots[0] = v;
    T denominator = v + c.epsilon;
    if constexpr (kCentered) {
      constexpr int kAverage = kMomentum ? 2 : 1;
      const T mean = c.rho * slots[kAverage] + c.one_minus_rho * g;
      slots[kAverage] = mean;
      denominator = v - mean * mean + c.epsilon;
    }
    T change = c.rate * g / sqrt(denominator);
    if constexpr (kMomentum) {
      change = c.momentum * slots[1] + change;
      slots[1] = change;
    }
    return decayed - change;
  }
};

template <typename T>
struct AdagradCoefficients {
  T rate;
  T weight_decay;
  T epsilon;
};

// Slot: the accumulator.
struct AdagradUpdate {
  static constexpr int kSlotCount = 1;
  template <typename T>
  using Coefficients = AdagradCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const AdagradCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T a = slots[0] + g * g;
    const T decayed = w - w * c.weight_decay * c.rate;
    slots[0] = a;
    return decayed - c.rate * g / sqrt(a + c.epsilon);
  }
};

template <typename T>
struct AdadeltaCoefficients {
  T rate;
  T weight_decay;
  T rho;
  T one_minus_rho;
  T epsilon;
};

// Slots: accumulated gradients, accumulated changes.
struct AdadeltaUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = AdadeltaCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const AdadeltaCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T a = c.rho * slots[0] + c.one_minus_rho * (g * g);
    const T b = slots[1];
    const T delta = -(sqrt(b + c.epsilon) * g / sqrt(a + c.epsilon));
    const T decayed = w - w * c.weight_decay * c.rate;
    slots[0] = a;
    slots[1] = c.rho * b + c.one_minus_rho * (delta * delta);
    return decayed + c.rate * delta;
  }
};

template <typename T>
struct AdamaxCoefficients {
  T rate;
  T weight_decay;
  T one_minus_beta_1;
  T beta_2;
  T correction;
  T epsilon;
};

// Slots: momentum, norm.
struct AdamaxUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = AdamaxCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const AdamaxCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T m = slots[0] + (g - slots[0]) * c.one_minus_beta_1;
    const T decayed_norm = c.beta_2 * slots[1];
    const T size = fabs(g);
    // If `size` is NaN, the comparison is false, and the NaN is kept.
    const T u = decayed_norm > size ? decayed_norm : size;
    const T decayed = w - w * c.weight_decay * c.rate;
    slots[0] = m;
    slots[1] = u;
    return decayed - c.rate * m / (c.correction * (u + c.epsilon));
  }
};

template <typename T>
struct NadamCoefficients {
  T rate;
  T weight_decay;
  T one_minus_beta_1;
  T one_minus_beta_2;
  T momentum_share;
  T gradient_share;
  T velocity_correction;
  T epsilon;
};

// Slots: momentum, velocity.
struct NadamUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = NadamCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const NadamCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T m = slots[0] + (g - slots[0]) * c.one_minus_beta_1;
    const T v = slots[1] + (g * g - slots[1]) * c.one_minus_beta_2;
    const T decayed = w - w * c.weight_decay * c.rate;
    slots[0] = m;
    slots[1] = v;
    const T direction = c.momentum_share * m + c.gradient_share * g;
    return decayed -
           direction * c.rate / (sqrt(v / c.velocity_correction) + c.epsilon);
  }
};

template <typename T>
struct ScheduleFreeAdamWCoefficients {
  T rate;
  T weight_decay;
  T warmed_up_rate;
  T beta_1;
  T one_minus_beta_2;
  T velocity_correction;
  T epsilon;
  T share;  // 1 / t
};

// Slots: z, velocity.
struct ScheduleFreeAdamWUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = ScheduleFreeAdamWCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const ScheduleFreeAdamWCoefficients<T>& c, T g,
                                 T w, T* slots) {
    const T old_z = slots[0];
    const T v = slots[1] + (g * g - slots[1]) * c.one_minus_beta_2;
    const T decayed = w - w * c.weight_decay * c.rate;
    const T z = old_z - c.warmed_up_rate * g /
                            (sqrt(v / c.velocity_correction) + c.epsilon);
    const T old_x = (decayed - (1 - c.beta_1) * old_z) / c.beta_1;
    const T x = (1 - c.share) * old_x + c.share * z;
    slots[0] = z;
    slots[1] = v;
    return (1 - c.beta_1) * z + c.beta_1 * x;
  }
};

template <typename T>
struct LionCoefficients {
  T rate;
  T weight_decay;
  T beta_1;
  T beta_2;
  T one_minus_beta_1;
  T one_minus_beta_2;
};

// Slot: the momentum.
struct LionUpdate {
  static constexpr int kSlotCount = 1;
  template <typename T>
  using Coefficients = LionCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const LionCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T m = slots[0];
    const T decayed = w - w * c.weight_decay * c.rate;
    const T direction = m * c.beta_1 + g * c.one_minus_beta_1;
    // Propagates NaN, which has no sign.
    const T sign = direction > 0 ? T(1) : direction < 0 ? T(-1) : direction;
    slots[0] = m * c.beta_2 + g * c.one_minus_beta_2;
    return decayed - c.rate * sign;
  }
};

template <typename T>
struct FtrlCoefficients {
  T rate;
  T weight_decay;
  T exponent;  // -learning_rate_power
  T l1;
  T twice_l2;  // Includes the term of beta.
  T twice_l2_shrinkage;
};

// Slots: accumulator, linear. The default exponent is a square root, which is
// vectorized; pow() is not.
template <bool kSquareRoot>
struct FtrlUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = FtrlCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const FtrlCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T decayed = w - w * c.weight_decay * c.rate;
    const T old_sum = slots[0];
    const T new_sum = old_sum + g * g;
    const T old_power = kSquareRoot ? sqrt(old_sum) : pow(old_sum, c.exponent);
    const T new_power = kSquareRoot ? sqrt(new_sum) : pow(new_sum, c.exponent);
    const T z = slots[1] + ((g + c.twice_l2_shrinkage * decayed) -
                            (new_power - old_power) / c.rate * decayed);
    const T above = z > -c.l1 ? z : -c.l1;
    const T clipped = above < c.l1 ? above : c.l1;
    slots[0] = new_sum;
    slots[1] = z;
    return (clipped - z) / (new_power / c.rate + c.twice_l2);
  }
};

template <typename T>
struct LambCoefficients {
  T rate;
  T weight_decay;
  T one_minus_beta_1;
  T one_minus_beta_2;
  T momentum_correction;
  T velocity_correction;
  T epsilon;
};

// The direction in which Lamb changes a weight.
template <typename T>
MUSTER_UPDATE_FUNCTION T LambDirection(const LambCoefficients<T>& c, T m, T v) {
  return (m / c.momentum_correction) /
         (sqrt(v / c.velocity_correction) + c.epsilon);
}

// Returns the factor of Lamb's directions, from the sums of the squares of a
// variable's decayed weights and of their directions.
MUSTER_UPDATE_FUNCTION double LambRatio(double weight_squares,
                                        double direction_squares) {
  return weight_squares > 0 && direction_squares > 0
             ? sqrt(weight_squares / direction_squares)
             : 1;
}

// The first pass of Lamb: updates the slots and decays the weight. Slots:
// momentum, velocity.
struct LambUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = LambCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const LambCoefficients<T>& c, T g, T w,
                                 T* slots) {
    slots[0] = slots[0] + (g - slots[0]) * c.one_minus_beta_1;
    slots[1] = slots[1] + (g * g - slots[1]) * c.one_minus_beta_2;
    return w - w * c.weight_decay * c.rate;
  }
};

// The second pass of Lamb: `g` is the LambRatio() of the variable.
struct LambScaledUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = LambCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const LambCoefficients<T>& c, T g, T w,
                                 T* slots) {
    return w - g * c.rate * LambDirection(c, slots[0], slots[1]);
  }
};

template <typename T>
struct NoCoefficients {};

// A stage before an update rule: `w` is a sum of gradients.
struct AccumulateUpdate {
  static constexpr int kSlotCount = 0;
  template <typename T>
  using Coefficients = NoCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const NoCoefficients<T>&, T g, T w, T*) {
    return w + g;
  }
};

template <typename T>
struct AverageCoefficients {
  T momentum;
  T one_minus_momentum;
  bool overwrites;  // The weight becomes the average.
};

// A stage after an update rule, which takes no gradient. Slot: the moving
// average of the weight.
struct AverageUpdate {
  static constexpr int kSlotCount = 1;
  template <typename T>
  using Coefficients = AverageCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const AverageCoefficients<T>& c, T, T w,
                                 T* slots) {
    slots[0] = c.momentum * slots[0] + c.one_minus_momentum * w;
    return c.overwrites ? slots[0] : w;
  }
};

template <typename T>
struct LossScaleCoefficients {
  T growth_steps;
};

// Changes the scale `w` of losses. |g| is the scale with which a step was
// computed. `g` is positive if all gradients of the step were finite, and
// negative otherwise. Slot: the number of steps with finite gradients since the
// last change.
//
// Halves the scale with which the step was computed, not the current one: if
// several workers computed with one scale, only one of them halves it. The
// scale never becomes 0 or infinite, from which it could not recover.
struct LossScaleUpdate {
  static constexpr int kSlotCount = 1;
  template <typename T>
  using Coefficients = LossScaleCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const LossScaleCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T halved = -g * T(0.5);
    const T doubled = w * T(2);
    const T steps = slots[0] + T(1);
    const bool grows = steps >= c.growth_steps;
    const bool is_finite = g > T(0);
    slots[0] = is_finite && !grows ? steps : T(0);
    if (!is_finite) return halved > T(0) && halved < w ? halved : w;
    return grows && doubled - doubled == T(0) ? doubled : w;
  }
};

template <typename T>
struct MuonAdamCoefficients {
  T decay;
  T size;
  T one_minus_beta_1;
  T one_minus_beta_2;
  T epsilon;
};

// Muon for variables that are not matrices. Slots: momentum, velocity.
struct MuonAdamUpdate {
  static constexpr int kSlotCount = 2;
  template <typename T>
  using Coefficients = MuonAdamCoefficients<T>;

  template <typename T>
  MUSTER_UPDATE_FUNCTION T Apply(const MuonAdamCoefficients<T>& c, T g, T w,
                                 T* slots) {
    const T decayed = w - w * c.decay;
    const T m = slots[0] + (g - slots[0]) * c.one_minus_beta_1;
    const T v = slots[1] + (g * g - slots[1]) * c.one_minus_beta_2;
    slots[0] = m;
    slots[1] = v;
    return decayed - m * c.size / (sqrt(v) + c.epsilon);
  }
};

// The functions by the names of their device kernels: F(name, function...).
#define MUSTER_UPDATE_FUNCTIONS(F)                        \
  F(sgd, SgdUpdate<false>)                                \
  F(sgd_momentum, SgdUpdate<true>)                        \
  F(adam, AdamUpdate<false>)                              \
  F(adam_amsgrad, AdamUpdate<true>)                       \
  F(rmsprop, RmsPropUpdate<false, false>)                 \
  F(rmsprop_momentum, RmsPropUpdate<false, true>)         \
  F(rmsprop_centered, RmsPropUpdate<true, false>)         \
  F(rmsprop_centered_momentum, RmsPropUpdate<true, true>) \
  F(adagrad, AdagradUpdate)                               \
  F(adadelta, AdadeltaUpdate)                             \
  F(adamax, AdamaxUpdate)                                 \
  F(nadam, NadamUpdate)                                   \
  F(schedule_free_adamw, ScheduleFreeAdamWUpdate)         \
  F(lion, LionUpdate)                                     \
  F(ftrl, FtrlUpdate<true>)                               \
  F(ftrl_power, FtrlUpdate<false>)                        \
  F(lamb, LambUpdate)                                     \
  F(lamb_scaled, LambScaledUpdate)                        \
  F(muon_adam, MuonAdamUpdate)                            \
  F(accumulate, AccumulateUpdate)                         \
  F(average, AverageUpdate)                               \
  F(loss_scale, LossScaleUpdate)

}  // namespace muster

#endif  // COMMON_COMPUTE_FUNCTIONS_UPDATE_H_
