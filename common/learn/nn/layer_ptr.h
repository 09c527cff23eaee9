#ifndef COMMON_LEARN_NN_LAYER_PTR_H_
#define COMMON_LEARN_NN_LAYER_PTR_H_

#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"

// Symbolic calls of layers, from which functional models are defined
// (functional.h).
namespace muster {

class Layer;
class LayerOutputs;
template <typename T>
class LayerPtrTo;
struct CallContext;
struct LayerCall;

// A symbolic output of a layer call: it has no value, only its origin. Cheap to
// copy.
//
// Equivalent to: keras.KerasTensor.
class LayerOutput {
 public:
  LayerOutput() = default;  // Belongs to no layer; invalid in models.
  LayerOutput(std::shared_ptr<const LayerCall> call, int index)
      : call_(std::move(call)), index_(index) {}

  // Null for a default-constructed output.
  const std::shared_ptr<const LayerCall>& call() const { return call_; }
  // The index of the output within the call.
  int index() const { return index_; }

  // Converts to the layer that was called, so that Sequential({Input({4}),
  // Dense(1)}) can be written as in Keras. Null for a default-constructed
  // output.
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

// One or more outputs, so that both `layer(x)` and `layer({x, y})` compile.
class LayerOutputs : public std::vector<LayerOutput> {
 public:
  using std::vector<LayerOutput>::vector;
  LayerOutputs(LayerOutput output)  // NOLINT: implicit by design.
      : std::vector<LayerOutput>(1, std::move(output)) {}
  LayerOutputs(std::vector<LayerOutput> outputs)  // NOLINT: as above.
      : std::vector<LayerOutput>(std::move(outputs)) {}
};

namespace internal {

// `training` and `is_reversed` as in LayerCall.
LayerOutputs CallOnOutputs(std::shared_ptr<Layer> layer, LayerOutputs inputs,
                           std::optional<bool> training,
                           bool is_reversed = false);
bool IsTraining(const CallContext& context);
Value CallOnValue(Layer& layer, Value x, const CallContext& context);

}  // namespace internal

// A shared, callable pointer to a layer:
//
//   LayerOutput x = Dense(64)(inputs);
//   x = Add()({x, inputs});
//
// All calls of a layer share its weights.
template <typename T>
class LayerPtrTo : public std::shared_ptr<T> {
 public:
  using std::shared_ptr<T>::shared_ptr;
  LayerPtrTo() = default;
  LayerPtrTo(std::shared_ptr<T> layer)  // NOLINT: std::make_shared<MyLayer>().
      : std::shared_ptr<T>(std::move(layer)) {}

  // Calls the layer in a functional model, in the context in which the model is
  // called. Returns the first output.
  LayerOutput operator()(LayerOutputs inputs) const {
    return CallAll(std::move(inputs)).front();
  }
  // Calls the layer in `context`, regardless of the model's. For example,
  // `base(x, kInference)` freezes the moving statistics of `base` while the
  // rest of the model trains.
  LayerOutput operator()(LayerOutputs inputs,
                         const CallContext& context) const {
    return internal::CallOnOutputs(*this, std::move(inputs),
                                   internal::IsTraining(context))
        .front();
  }
  // Returns all outputs.
  LayerOutputs CallAll(LayerOutputs inputs) const {
    return internal::CallOnOutputs(*this, std::move(inputs), std::nullopt);
  }

  // Calls a layer of two directions in the second one (CallContext::reverse):
  // keras' layer(x, reverse=True).
  LayerOutput Reverse(LayerOutputs inputs) const {
    return internal::CallOnOutputs(*this, std::move(inputs), std::nullopt,
                                   /*is_reversed=*/true)
        .front();
  }

  // Calls the layer from another layer's Call(), like (*layer)(x, context).
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

// A call in a functional model.
struct LayerCall {
  LayerPtr layer;
  LayerOutputs inputs;  // Empty for Input().
  // Unset: the value with which the enclosing model is called.
  std::optional<bool> training;
  // See CallContext::reverse.
  bool is_reversed = false;
  // The index of this call over all calls of the layer.
  int index = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYER_PTR_H_
