#ifndef COMMON_LEARN_NN_FUNCTIONAL_H_
#define COMMON_LEARN_NN_FUNCTIONAL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/structure.h"

namespace muster {

struct FunctionalOptions {
  std::string name = "";
  // How programs of Keras nest inputs and outputs. Muster has them in the order
  // of the leaves. Where empty, one is alone and several are a list.
  std::optional<Structure> input_structure = std::nullopt;
  std::optional<Structure> output_structure = std::nullopt;
};

// A model that is a directed acyclic graph of layers, defined by calling them:
//
//   LayerOutput inputs = Input({28, 28, 1});
//   LayerOutput x = Conv2D(32, 3, {.activation = Activation::kRelu})(inputs);
//   x = Add()({x, Conv2D(32, 1)(x)});
//   LayerPtr model = Functional(inputs, Dense(10)(Flatten()(x)));
//
// A functional model is itself a layer: it can be called, be part of another
// model, and share layers with it. Layers without a name are named in the order
// of their creation; layers() and weights() are in Keras' order.
//
// status() reports an invalid model. Calling the model reports the same error
// to the graph builder.
class FunctionalLayer : public Layer {
 public:
  FunctionalLayer(LayerOutputs inputs, LayerOutputs outputs,
                  const FunctionalOptions& options);
  // A model that could not be built. It has this status and no layers.
  explicit FunctionalLayer(absl::Status status) : status_(std::move(status)) {}

  // While status() is an error: kAnyCount and 1, so that calls report status().
  int input_count() const override;
  int output_count() const override;
  // The name of the layer that returns each output, or what output_structure()
  // calls it.
  std::vector<std::string> output_names() const override;
  // Empty unless all inputs come from Input().
  std::vector<TensorType> input_types() const override;

  const Structure& input_structure() const { return input_structure_; }
  const Structure& output_structure() const { return output_structure_; }

  //   kInvalidArgument  a structure has another number of leaves; an output
  //   does not depend on the inputs alone; two
  //                     layers have the same name; see OrderCalls() in
  //                     call_order.h
  const absl::Status& status() const { return status_; }

  const LayerOutputs& inputs() const { return inputs_; }
  const LayerOutputs& outputs() const { return outputs_; }
  // Returns the first output of the first call of the layer of this name, for
  // defining other models. If no layer has the name, returns an output that
  // belongs to no layer.
  LayerOutput OutputOf(absl::string_view layer_name) const;

  // In execution order, including the calls of Input().
  absl::Span<const std::shared_ptr<const LayerCall>> calls() const {
    return calls_;
  }

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  absl::Status Connect();

  const LayerOutputs inputs_;
  const LayerOutputs outputs_;
  const Structure input_structure_;
  const Structure output_structure_;
  absl::Status status_;
  std::vector<std::shared_ptr<const LayerCall>> calls_;
};

// Equivalent to: keras.Model(inputs, outputs).
LayerPtrTo<FunctionalLayer> Functional(LayerOutputs inputs,
                                       LayerOutputs outputs,
                                       const FunctionalOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_FUNCTIONAL_H_
