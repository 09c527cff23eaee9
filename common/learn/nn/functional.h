#ifndef COMMON_LEARN_NN_FUNCTIONAL_H_
#define COMMON_LEARN_NN_FUNCTIONAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct FunctionalOptions {
  std::string name = "";
};

// Layers in any arrangement without circles, as drawn by calling them:
//
//   LayerOutput inputs = Input({28, 28, 1});
//   LayerOutput x = Conv2D(32, 3, {.activation = Activation::kRelu})(inputs);
//   x = Add()({x, Conv2D(32, 1)(x)});
//   LayerPtr model = Functional(inputs, Dense(10)(Flatten()(x)));
//
// Is a layer itself: it may be called, stand inside another model, and share
// layers with it. Layers without a name are named in the order in which they
// were made; layers() and weights() have Keras' order.
//
// Mistakes (an output that does not follow from the inputs, two layers of one
// name) are in status(), and reported to the graph when the model is called.
class FunctionalLayer : public Layer {
 public:
  FunctionalLayer(LayerOutputs inputs, LayerOutputs outputs,
                  const FunctionalOptions& options);
  // A model that could not be drawn: has this status and no layers.
  explicit FunctionalLayer(absl::Status status) : status_(std::move(status)) {}

  // While status() is an error, any number and one: the call tells of it.
  int input_count() const override;
  int output_count() const override;
  // Each output is called as the layer that gives it.
  std::vector<std::string> output_names() const override;
  // Empty where an input is what some layer gives and no Input().
  std::vector<TensorType> input_types() const override;

  //   kInvalidArgument  see above
  const absl::Status& status() const { return status_; }

  const LayerOutputs& inputs() const { return inputs_; }
  const LayerOutputs& outputs() const { return outputs_; }
  // What the first call of the layer of this name gives, to draw other models
  // from; an output of no layer when there is none of this name.
  LayerOutput OutputOf(absl::string_view layer_name) const;

  // In the order in which they run, those of Input() among them.
  absl::Span<const std::shared_ptr<const LayerCall>> calls() const {
    return calls_;
  }

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  const LayerOutputs inputs_;
  const LayerOutputs outputs_;
  absl::Status status_;
  std::vector<std::shared_ptr<const LayerCall>> calls_;
};

// Equivalent to: keras.Model(inputs, outputs).
LayerPtrTo<FunctionalLayer> Functional(LayerOutputs inputs,
                                       LayerOutputs outputs,
                                       const FunctionalOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_FUNCTIONAL_H_
