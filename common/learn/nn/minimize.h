#ifndef COMMON_LEARN_NN_MINIMIZE_H_
#define COMMON_LEARN_NN_MINIMIZE_H_

#include <functional>
#include <optional>

#include "absl/types/span.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
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
// As above, where weights have different optimizers. With a `loss_scale`, a
// float32 scalar, the gradients are those of the loss times that variable,
// divided by it, and ApplyGradient() names it.
void Minimize(Value loss, absl::Span<const Weight> weights,
              const ClippingOfWeight& clipping_of,
              const std::optional<VariableHandle>& loss_scale = std::nullopt);

}  // namespace muster

#endif  // COMMON_LEARN_NN_MINIMIZE_H_
