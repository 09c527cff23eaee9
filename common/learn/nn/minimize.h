#ifndef COMMON_LEARN_NN_MINIMIZE_H_
#define COMMON_LEARN_NN_MINIMIZE_H_

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/gradient_clipping.h"
#include "common/learn/nn/weight.h"

namespace muster {

// Makes the step that is being traced apply the gradient of `loss` to each of
// `weights`, through the optimizer of their store: for loops of one's own.
// Weights that `loss` does not depend on stay as they are.
//
// Reported to the builder: a loss that is not floating, and options that make
// no sense.
//
// Equivalent to: keras.optimizers.Optimizer.minimize().
void Minimize(Value loss, absl::Span<const Weight> weights,
              const GradientClipping& clipping = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_MINIMIZE_H_
