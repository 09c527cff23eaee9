#include "common/nn/sequential.h"

#include <memory>
#include <vector>

#include "common/graph/graph_builder.h"
#include "common/nn/layer.h"

namespace muster {

SequentialLayer::SequentialLayer(const std::vector<LayerPtr>& layers,
                                 const SequentialOptions& options)
    : Layer(options.name) {
  for (const LayerPtr& layer : layers) AddLayer(layer);
}

Value SequentialLayer::Call(Value x, const CallContext& context) {
  for (const LayerPtr& layer : layers()) x = (*layer)(x, context);
  return x;
}

LayerPtr Sequential(const std::vector<LayerPtr>& layers,
                    const SequentialOptions& options) {
  return std::make_shared<SequentialLayer>(layers, options);
}

}  // namespace muster
