#ifndef COMMON_COMPUTE_FUNCTIONS_GRADIENT_CLIPPING_H_
#define COMMON_COMPUTE_FUNCTIONS_GRADIENT_CLIPPING_H_

#include <cstdint>

namespace muster {

// The limits on the gradients that an optimizer applies. 0 means no limit. At
// most one limit is set. Synchronous replicas clip the combined gradient;
// workers of parameter servers clip their own.
//
// Equivalent to: the arguments of keras.optimizers.Optimizer.
struct GradientClipping {
  // Elements are limited to [-clipvalue, clipvalue].
  double clipvalue = 0;
  // Each gradient is scaled down to this L2 norm.
  double clipnorm = 0;
  // All gradients that a step applies with this option and the same norm_group
  // are scaled down together to this L2 norm. The step cannot read a variable
  // after such a gradient.
  double global_clipnorm = 0;
  // Identifies the gradients that share a global norm: those of one optimizer.
  int64_t norm_group = 0;

  bool is_set() const {
    return clipvalue > 0 || clipnorm > 0 || global_clipnorm > 0;
  }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_FUNCTIONS_GRADIENT_CLIPPING_H_
