#ifndef COMMON_LEARN_NN_LAYERS_RESHAPE_H_
#define COMMON_LEARN_NN_LAYERS_RESHAPE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/learn/nn/layer.h"

// Layers that rearrange the elements of each example. The batch axis does not
// change and is not counted. No weights.
//
// Source: keras.layers.Reshape, keras.layers.Permute.
namespace muster {

struct ReshapeOptions {
  std::string name = "";
};

// Input [batch, ...], output [batch, target_shape...].
class ReshapeLayer : public Layer {
 public:
  ReshapeLayer(std::vector<int64_t> target_shape, const ReshapeOptions& options)
      : Layer(options.name), target_shape_(std::move(target_shape)) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  std::vector<int64_t> target_shape_;
};

// One extent may be -1; it is computed from the others.
//
// Equivalent to: keras.layers.Reshape.
LayerPtr Reshape(std::vector<int64_t> target_shape,
                 const ReshapeOptions& options = {});

// Input [batch, d1, d2, ...], output [batch, d(dims[0]), d(dims[1]), ...].
class PermuteLayer : public Layer {
 public:
  PermuteLayer(std::vector<int64_t> dims, const ReshapeOptions& options)
      : Layer(options.name), dims_(std::move(dims)) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  std::vector<int64_t> dims_;
};

// Axes are counted from 1, without the batch: Permute({2, 1}) swaps the first
// two.
//
// Equivalent to: keras.layers.Permute.
LayerPtr Permute(std::vector<int64_t> dims, const ReshapeOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_RESHAPE_H_
