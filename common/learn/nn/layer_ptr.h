#ifndef COMMON_LEARN_NN_LAYER_PTR_H_
#define COMMON_LEARN_NN_LAYER_PTR_H_

#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"

// Layers as they are called before there is any data: what functional models
// are drawn with (functional.h).
namespace muster {

class Layer;
class LayerOutputs;
template <typename T>
class LayerPtrTo;
struct CallContext;
struct LayerCall;

// What one call of a layer will give: no tensor yet, only where it comes from.
// Cheap to copy.
//
// Equivalent to: keras.KerasTensor.
class LayerOutput {
 public:
  LayerOutput() = default;  // Of no layer; models refuse it.
  LayerOutput(std::shared_ptr<const LayerCall> call, int index)
      : call_(std::move(call)), index_(index) {}

  // Null for a default-constructed output.
  const std::shared_ptr<const LayerCall>& call() const { return call_; }
  // Among the outputs of the call.
  int index() const { return index_; }

  // The layer called, so that Sequential({Input({4}), Dense(1)}) reads as in
  // Keras. Null for a default-constructed output.
  operator LayerPtrTo<Layer>() const;  // NOLINT: see above.

  bool operator==(const LayerOutput& other) const {
    return call_ == other.call_ && index_ == other.index_;
  }
  bool operator!=(const LayerOutput& other) const { return !(*this == other); }

  template <typename H>
  friend H AbslHashValue(H state, const LayerOutput& output) {
    return H::combine(std::move(state), output.call_.get(), output.index_);
  }

 private:
  std::shared_ptr<const LayerCall> call_;
  int index_ = 0;
};

// One or several, so that `layer(x)` and `layer({x, y})` both work.
class LayerOutputs : public std::vector<LayerOutput> {
 public:
  using std::vector<LayerOutput>::vector;
  LayerOutputs(LayerOutput output)  // NOLINT: one is several.
      : std::vector<LayerOutput>(1, std::move(output)) {}
  LayerOutputs(std::vector<LayerOutput> outputs)  // NOLINT: as above.
      : std::vector<LayerOutput>(std::move(outputs)) {}
};

namespace internal {

LayerOutputs CallOnOutputs(std::shared_ptr<Layer> layer, LayerOutputs inputs,
                           const CallContext* context);
Value CallOnValue(Layer& layer, Value x, const CallContext& context);

}  // namespace internal

// A layer that is shared by those who use it, and may be called:
//
//   LayerOutput x = Dense(64)(inputs);
//   x = Add()({x, inputs});
//
// A layer that is called several times has one set of weights.
template <typename T>
class LayerPtrTo : public std::shared_ptr<T> {
 public:
  using std::shared_ptr<T>::shared_ptr;
  LayerPtrTo() = default;
  LayerPtrTo(std::shared_ptr<T> layer)  // NOLINT: std::make_shared<MyLayer>().
      : std::shared_ptr<T>(std::move(layer)) {}

  // In a functional model. The first output; `context` is the model's.
  LayerOutput operator()(LayerOutputs inputs) const {
    return CallAll(std::move(inputs)).front();
  }
  // In this context, whatever the model's: `base(x, kInference)` keeps the
  // moving statistics of `base` as they are while the rest trains.
  LayerOutput operator()(LayerOutputs inputs,
                         const CallContext& context) const {
    return internal::CallOnOutputs(*this, std::move(inputs), &context).front();
  }
  // All outputs.
  LayerOutputs CallAll(LayerOutputs inputs) const {
    return internal::CallOnOutputs(*this, std::move(inputs), nullptr);
  }

  // In a layer's Call(): as (*layer)(x, context).
  Value operator()(Value x, const CallContext& context) const {
    return internal::CallOnValue(**this, x, context);
  }
};

using LayerPtr = LayerPtrTo<Layer>;

// LayerPtr block = MakeLayer<MyBlock>(64);
template <typename T, typename... Args>
LayerPtrTo<T> MakeLayer(Args&&... args) {
  return std::make_shared<T>(std::forward<Args>(args)...);
}

// A call that functional models are made of.
struct LayerCall {
  LayerPtr layer;
  LayerOutputs inputs;  // None for Input().
  // Unset: as the model that it stands in is called.
  std::optional<bool> training;
  // Among the calls of the layer.
  int index = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYER_PTR_H_
