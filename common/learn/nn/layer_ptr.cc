#include "common/learn/nn/layer_ptr.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/layer.h"

namespace muster {

LayerOutput::operator LayerPtr() const {
  return call_ == nullptr ? LayerPtr() : call_->layer;
}

namespace internal {

LayerOutputs CallOnOutputs(std::shared_ptr<Layer> layer, LayerOutputs inputs,
                           std::optional<bool> training, bool is_reversed) {
  auto call = std::make_shared<LayerCall>();
  call->layer = std::move(layer);
  call->inputs = std::move(inputs);
  call->training = training;
  call->is_reversed = is_reversed;
  call->index = call->layer->CountCall();

  LayerOutputs outputs;
  const int output_count = std::max(1, call->layer->output_count());
  for (int i = 0; i < output_count; ++i) outputs.emplace_back(call, i);
  return outputs;
}

bool IsTraining(const CallContext& context) { return context.training; }

Value CallOnValue(Layer& layer, Value x, const CallContext& context) {
  return layer(x, context);
}

}  // namespace internal
}  // namespace muster
