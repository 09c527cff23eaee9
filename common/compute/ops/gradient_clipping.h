#ifndef COMMON_COMPUTE_VARIABLES_GRADIENT_CLIPPING_H_
#define COMMON_COMPUTE_VARIABLES_GRADIENT_CLIPPING_H_

namespace muster {

// How gradients are kept small before the optimizer sees them; 0: not in this
// way. At most one is set.
//
// Equivalent to: the arguments of keras.optimizers.Optimizer.
struct GradientClipping {
  // Elements are cut to [-clipvalue, clipvalue].
  double clipvalue = 0;
  // Each gradient is scaled down to this L2 norm.
  double clipnorm = 0;
  // All gradients of a step together are scaled down to this L2 norm.
  double global_clipnorm = 0;

  bool is_set() const {
    return clipvalue > 0 || clipnorm > 0 || global_clipnorm > 0;
  }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_GRADIENT_CLIPPING_H_
