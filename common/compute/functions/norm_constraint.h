#ifndef COMMON_COMPUTE_FUNCTIONS_NORM_CONSTRAINT_H_
#define COMMON_COMPUTE_FUNCTIONS_NORM_CONSTRAINT_H_

#include "common/core/base/host_device.h"

// The arithmetic of constraints on norms, which the host and device kernels
// share. T is float or double.
//
// Source: keras.constraints.
namespace muster {

// The norms that a constraint allows. If `is_unit`, only 1; the rest is unused.
struct NormBounds {
  double min_value;
  double max_value;
  double rate;
  bool is_unit;
};

// Returns the divisor of the elements of a norm if `is_unit`, and their factor
// otherwise. Keras does the same; the two differ in the last digit.
template <typename T>
MUSTER_HOST_DEVICE inline T NormFactor(const NormBounds& bounds, T norm) {
  const T divisor = static_cast<T>(1e-7) + norm;  // keras.backend.epsilon().
  if (bounds.is_unit) return divisor;
  const T least = static_cast<T>(bounds.min_value);
  const T greatest = static_cast<T>(bounds.max_value);
  const T allowed = norm < least ? least : norm > greatest ? greatest : norm;
  const T desired = static_cast<T>(bounds.rate) * allowed +
                    static_cast<T>(1 - bounds.rate) * norm;
  return desired / divisor;
}

template <typename T>
MUSTER_HOST_DEVICE inline T ApplyNormFactor(const NormBounds& bounds, T factor,
                                            T w) {
  return bounds.is_unit ? w / factor : w * factor;
}

}  // namespace muster

#endif  // COMMON_COMPUTE_FUNCTIONS_NORM_CONSTRAINT_H_
