#ifndef COMMON_LEARN_NN_LAYERS_SPECTRAL_NORMALIZATION_H_
#define COMMON_LEARN_NN_LAYERS_SPECTRAL_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/wrapper.h"

namespace muster {

struct SpectralNormalizationOptions {
  // In each call while training.
  int64_t power_iterations = 1;
  std::string name = "";
};

// Divides the kernel of a layer by its greatest singular value while training,
// which bounds how much the layer can stretch its input. With the kernel as a
// matrix W [all other axes, last axis], and u from the step before:
//
//   v = normalize(u W^T), u = normalize(v W)   power_iterations times
//   kernel = kernel / (v W u^T)                unless it is all 0
//
// The kernel itself is replaced, before the step's gradient is applied to it.
// The gradient is that of the normalized kernel; none flows through the
// division. In inference the kernel stays as it is.
//
// The layer has one input, one output, and a weight "kernel" (Dense,
// EinsumDense and convolutions, but neither separable nor recurrent ones) or
// "embeddings". Input and output are those of the layer; a floating output has
// the dtype of a floating input. A mask is passed on if the layer passes it on.
//
// Weights: vector_u [1, last extent of the kernel], which is not trained, and
// those of the layer. Replicas that train in sync compute equal updates. If the
// layer is called several times in a step, each call divides once more, and
// deterministic mode refuses the step.
//
// Source: Miyato et al., "Spectral Normalization for Generative Adversarial
// Networks", 2018 (arXiv:1802.05957); keras.layers.SpectralNormalization.
class SpectralNormalizationLayer : public WrapperLayer {
 public:
  SpectralNormalizationLayer(const LayerPtr& layer,
                             const SpectralNormalizationOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;
  std::vector<Part> parts() const override;
  std::vector<Weight> own_weights() const override;

 protected:
  void BuildMany(absl::Span<const Shape> inputs) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  // The layer's output while the kernel reads as its normalized value.
  Value CallNormalized(Value x, const CallContext& context);

  LayerPtr layer_;
  int64_t power_iterations_;
  bool has_kernel_ = false;
  Weight kernel_;  // Of the layer.
  Weight vector_u_;
};

// Example: SpectralNormalization(Conv2D(64, 3)).
//
// Equivalent to: keras.layers.SpectralNormalization.
LayerPtr SpectralNormalization(
    const LayerPtr& layer, const SpectralNormalizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_SPECTRAL_NORMALIZATION_H_
