#ifndef COMMON_LEARN_NN_DROPOUT_H_
#define COMMON_LEARN_NN_DROPOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct DropoutOptions {
  // The shape of the random decisions, of as many extents as the input has; 1:
  // one decision for the whole axis; -1: one for each position, as Keras' None.
  // {-1, 1, 1, 1} drops whole examples of a batch of images. Empty: one
  // decision for each element.
  std::vector<int64_t> noise_shape = {};
  uint64_t seed = 0;  // 0: derived from the model's seed.
  std::string name = "";
};

// While training, sets each element to 0 with probability `rate`, in [0, 1],
// and multiplies the others by 1 / (1 - rate). Otherwise returns its input.
// Accepts any shape; the output has the shape of the input. No weights.
//
// Reported to the builder: kInvalidArgument for a rate or a noise_shape that is
// invalid or does not fit the input.
//
// Source: Srivastava et al., "Dropout", 2014; keras.layers.Dropout.
class DropoutLayer : public Layer {
 public:
  DropoutLayer(double rate, const DropoutOptions& options)
      : Layer(options.name),
        rate_(rate),
        noise_shape_(options.noise_shape),
        seed_(options.seed) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) override;

 private:
  double rate_;
  std::vector<int64_t> noise_shape_;
  uint64_t seed_;
};

// Equivalent to: keras.layers.Dropout.
LayerPtr Dropout(double rate, const DropoutOptions& options = {});

namespace internal {

// Returns `x` with elements set to 0 with probability `rate`, in [0, 1), and
// the others multiplied by 1 / (1 - rate). `noise_shape` is as in
// DropoutOptions. If it does not fit `x`, reports kInvalidArgument with the
// name of the layer to the builder, and returns a poisoned value.
Value DropWithNoiseShape(Value x, Value seed, double rate,
                         const std::vector<int64_t>& noise_shape,
                         absl::string_view layer);

}  // namespace internal

}  // namespace muster

#endif  // COMMON_LEARN_NN_DROPOUT_H_
