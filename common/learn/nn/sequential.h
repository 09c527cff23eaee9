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

// A stack of layers. It is itself a layer and can be part of another one. An
// Input() at the front declares the type of the input before any data is seen;
// it is not one of layers().
class SequentialLayer : public Layer {
 public:
  SequentialLayer(const std::vector<LayerPtr>& layers,
                  const SequentialOptions& options);

  std::vector<TensorType> input_types() const override;
  // The Input() at the front; null if there is none.
  const LayerPtr& input() const { return input_; }

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  Value Call(Value x, const CallContext& context) override;

 private:
  LayerPtr input_;
};

// Equivalent to: keras.Sequential.
LayerPtr Sequential(const std::vector<LayerPtr>& layers,
                    const SequentialOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_SEQUENTIAL_H_
