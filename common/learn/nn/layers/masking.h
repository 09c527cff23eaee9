#ifndef COMMON_LEARN_NN_LAYERS_MASKING_H_
#define COMMON_LEARN_NN_LAYERS_MASKING_H_

#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

struct MaskingOptions {
  double mask_value = 0;
  std::string name = "";
};

// Marks the positions of sequences as padding whose features all equal
// `mask_value`, and sets their features to 0. Input [batch, time, ...,
// features]; the output has the shape of the input and a mask without its last
// axis (masks.h). No weights. NaN equals nothing.
//
// Source: keras.layers.Masking.
class MaskingLayer : public Layer {
 public:
  explicit MaskingLayer(const MaskingOptions& options)
      : Layer(options.name), mask_value_(options.mask_value) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  double mask_value_;
};

// Equivalent to: keras.layers.Masking.
LayerPtr Masking(const MaskingOptions& options = {});

struct IdentityOptions {
  std::string name = "";
};

// Returns its input. No weights.
//
// Source: keras.layers.Identity.
class IdentityLayer : public Layer {
 public:
  explicit IdentityLayer(const IdentityOptions& options)
      : Layer(options.name) {}

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext&) override { return x; }
};

// Equivalent to: keras.layers.Identity.
LayerPtr Identity(const IdentityOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_MASKING_H_
