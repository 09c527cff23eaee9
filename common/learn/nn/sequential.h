#ifndef COMMON_LEARN_NN_SEQUENTIAL_H_
#define COMMON_LEARN_NN_SEQUENTIAL_H_

#include <string>
#include <vector>

#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct SequentialOptions {
  std::string name = "";
};

// Layers one after another. Is a layer itself and may stand inside another. An
// Input() in front says what the model takes before there is any data; it is
// not among layers().
class SequentialLayer : public Layer {
 public:
  SequentialLayer(const std::vector<LayerPtr>& layers,
                  const SequentialOptions& options);

  std::vector<TensorType> input_types() const override;

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  Value Call(Value x, const CallContext& context) override;

 private:
  LayerPtr input_;  // Null without an Input().
};

// Equivalent to: keras.Sequential.
LayerPtr Sequential(const std::vector<LayerPtr>& layers,
                    const SequentialOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_SEQUENTIAL_H_
