#ifndef COMMON_LEARN_NN_LAYERS_TIME_DISTRIBUTED_H_
#define COMMON_LEARN_NN_LAYERS_TIME_DISTRIBUTED_H_

#include <string>
#include <vector>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/wrapper.h"

namespace muster {

struct TimeDistributedOptions {
  std::string name = "";
};

// Calls a layer, or a model, on each time step with the same weights:
//
//   y[:, t] = layer(x[:, t])
//
// Input [batch, time, ...], output [batch, time] followed by the layer's output
// without its batch. All extents but the batch must be known. The layer has one
// input and one output. The mask of the input is that of the output; the layer
// does not see it.
//
// All time steps are one large batch of the layer. A layer with batch
// statistics (Layer::mixes_examples()) is called once per time step while
// training, as in Keras, so each time step has its own statistics. Dropout
// inside such a layer then drops the same elements of all time steps. What the
// layer would add to the loss is left out, as in Keras.
//
// Source: keras.layers.TimeDistributed.
class TimeDistributedLayer : public WrapperLayer {
 public:
  TimeDistributedLayer(const LayerPtr& layer,
                       const TimeDistributedOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;
  std::vector<Part> parts() const override;

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& outer) override;

 private:
  LayerPtr layer_;
};

// Example: TimeDistributed(Dense(8)).
//
// Equivalent to: keras.layers.TimeDistributed.
LayerPtr TimeDistributed(const LayerPtr& layer,
                         const TimeDistributedOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_TIME_DISTRIBUTED_H_
