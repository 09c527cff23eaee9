#include "common/learn/nn/sequential.h"

#include <memory>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"

namespace muster {

SequentialLayer::SequentialLayer(const std::vector<LayerPtr>& layers,
                                 const SequentialOptions& options)
    : Layer(options.name) {
  for (const LayerPtr& layer : layers) {
    const bool is_input =
        dynamic_cast<const InputLayer*>(layer.get()) != nullptr;
    if (is_input && layer == layers.front()) {
      input_ = layer;
    } else {
      AddLayer(layer);
    }
  }
}

std::vector<TensorType> SequentialLayer::input_types() const {
  return input_ == nullptr ? std::vector<TensorType>() : input_->input_types();
}

Value SequentialLayer::Call(Value x, const CallContext& context) {
  if (input_ != nullptr) x = (*input_)(x, context);
  for (const LayerPtr& layer : layers()) x = (*layer)(x, context);
  return x;
}

LayerPtr Sequential(const std::vector<LayerPtr>& layers,
                    const SequentialOptions& options) {
  return std::make_shared<SequentialLayer>(layers, options);
}

}  // namespace muster
