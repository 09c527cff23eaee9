#ifndef COMMON_LEARN_NN_LAYERS_EINSUM_DENSE_H_
#define COMMON_LEARN_NN_LAYERS_EINSUM_DENSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct EinsumDenseOptions {
  Activation activation = Activation::kLinear;
  // The axes of the output along which the bias differs, by their letters.
  // Empty: no bias.
  std::string bias_axes = "";
  Initializer kernel_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};

// y = activation(einsum(equation, x, kernel) + bias)
//
// `equation` names the axes of input, kernel and output by letters, and sums
// over those that the output lacks: "abc,cd->abd" is a Dense layer on
// sequences.
// "..." stands for any number of axes that input and output begin with, or end
// with: "...x,xy->...y", "ab...,bc->ac...".
//
// `output_shape` has the extents of the output without the batch and without
// the axes of "...". Shape::kUnknown, Keras' None, takes the extent of the
// input along the axis of the same letter.
//
// Weights: kernel, with the extents that input and output have along the axes
// of its letters; and bias if `bias_axes`, which broadcasts against the output.
// All extents but one must be known.
//
// Different from Keras: an initializer that scales by fan-in and fan-out takes
// them from the last two axes of the kernel.
//
// Source: keras.layers.EinsumDense.
class EinsumDenseLayer : public Layer {
 public:
  EinsumDenseLayer(const std::string& equation,
                   const std::vector<int64_t>& output_shape,
                   const EinsumDenseOptions& options)
      : Layer(options.name),
        equation_(equation),
        output_shape_(output_shape),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  std::string equation_;
  std::vector<int64_t> output_shape_;
  EinsumDenseOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Example: EinsumDense("abc,cd->abd", {Shape::kUnknown, 64}, {.bias_axes =
// "d"}).
//
// Equivalent to: keras.layers.EinsumDense.
LayerPtr EinsumDense(const std::string& equation,
                     const std::vector<int64_t>& output_shape,
                     const EinsumDenseOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_EINSUM_DENSE_H_
