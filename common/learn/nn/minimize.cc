#include "common/learn/nn/minimize.h"

#include <optional>
#include <string>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/ops/ops.h"

namespace muster {

void Minimize(Value loss, absl::Span<const Weight> weights,
              const GradientClipping& clipping) {
  Minimize(loss, weights, [&](const Weight&) { return clipping; });
}

void Minimize(Value loss, absl::Span<const Weight> weights,
              const ClippingOfWeight& clipping_of,
              const std::optional<VariableHandle>& loss_scale) {
  std::vector<std::string> names;
  names.reserve(weights.size());
  for (const Weight& weight : weights) names.push_back(weight.name());
  std::string scale_name;
  Value scale;
  if (loss_scale.has_value() && loss.ok()) {
    scale_name = loss_scale->name;
    scale = ReadVariable(*loss.builder(), *loss_scale);
    loss = loss * Cast(scale, loss.dtype());
  }
  const auto unscaled = [&](Value gradient) {
    return scale.ok() && gradient.ok()
               ? gradient / Cast(scale, gradient.dtype())
               : gradient;
  };
  const std::vector<Gradient> gradients = VariableGradients(loss, names);
  for (size_t i = 0; i < weights.size(); ++i) {
    const GradientClipping clipping = clipping_of(weights[i]);
    if (gradients[i].sparse.has_value()) {
      ApplySparseGradient(weights[i].handle(),
                          unscaled(gradients[i].sparse->values),
                          gradients[i].sparse->indices, clipping, scale_name);
    } else if (gradients[i].exists()) {
      ApplyGradient(weights[i].handle(), unscaled(gradients[i].dense), clipping,
                    scale_name);
    }
  }
}

}  // namespace muster
