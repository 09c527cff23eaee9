#include "common/learn/nn/minimize.h"

#include <string>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/ops/variable_ops.h"

namespace muster {

void Minimize(Value loss, absl::Span<const Weight> weights,
              const GradientClipping& clipping) {
  Minimize(loss, weights, [&](const Weight&) { return clipping; });
}

void Minimize(Value loss, absl::Span<const Weight> weights,
              const ClippingOfWeight& clipping_of) {
  std::vector<std::string> names;
  names.reserve(weights.size());
  for (const Weight& weight : weights) names.push_back(weight.name());
  const std::vector<Gradient> gradients = VariableGradients(loss, names);
  for (size_t i = 0; i < weights.size(); ++i) {
    const GradientClipping clipping = clipping_of(weights[i]);
    if (gradients[i].sparse.has_value()) {
      ApplySparseGradient(weights[i].handle(), gradients[i].sparse->values,
                          gradients[i].sparse->indices, clipping);
    } else if (gradients[i].exists()) {
      ApplyGradient(weights[i].handle(), gradients[i].dense, clipping);
    }
  }
}

}  // namespace muster
