#ifndef COMMON_LEARN_NN_INPUT_H_
#define COMMON_LEARN_NN_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct InputLayerOptions {
  DType dtype = DType::kFloat32;
  // The number of examples of every batch; kUnknown: any. Recurrent layers with
  // `stateful` need it. With it, the shape has one unknown extent at most.
  int64_t batch_size = Shape::kUnknown;
  std::string name = "";
};

// An input of a model. Other numeric dtypes are converted to the declared one.
// A last axis of extent 1 is added or left out where only it differs, as in
// Keras: a column of numbers [batch] fits Input({1}). Another shape is reported
// to the builder as kInvalidArgument, and a batch of another size than
// batch_size fails the step with this code.
class InputLayer : public Layer {
 public:
  InputLayer(const Shape& shape, const InputLayerOptions& options);

  // With the batch as the first axis.
  std::vector<TensorType> input_types() const override { return {type_}; }
  std::string kind() const override { return "InputLayer"; }

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  Value Call(Value x, const CallContext& context) override;

 private:
  // Returns x with a known number of examples.
  Value WithBatchSize(Value x) const;

  TensorType type_;
};

// `shape` is that of one example, without the batch. Extents may be
// Shape::kUnknown.
//
// Equivalent to: keras.Input.
LayerOutput Input(const Shape& shape, const InputLayerOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_INPUT_H_
