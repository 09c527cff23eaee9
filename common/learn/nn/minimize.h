#ifndef COMMON_LEARN_NN_MINIMIZE_H_
#define COMMON_LEARN_NN_MINIMIZE_H_

#include <functional>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/gradient_clipping.h"
#include "common/learn/nn/weight.h"

namespace muster {

// Adds nodes to the step that is being traced that apply the gradient of `loss`
// to each of `weights`, with the optimizer of their store; for custom training
// loops. Weights that `loss` does not depend on do not change.
//
// Reports an error to the builder if the loss is not floating or the options
// are invalid.
//
// Equivalent to: keras.optimizers.Optimizer.minimize().
void Minimize(Value loss, absl::Span<const Weight> weights,
              const GradientClipping& clipping = {});

// How the gradient of a weight is clipped.
using ClippingOfWeight = std::function<GradientClipping(const Weight& weight)>;
// As above, where weights have different optimizers.
void Minimize(Value loss, absl::Span<const Weight> weights,
              const ClippingOfWeight& clipping_of);

}  // namespace muster

#endif  // COMMON_LEARN_NN_MINIMIZE_H_
