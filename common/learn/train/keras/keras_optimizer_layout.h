#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_OPTIMIZER_LAYOUT_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_OPTIMIZER_LAYOUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"

namespace muster {

namespace proto {
class Optimizer;
}  // namespace proto

// The optimizer slots of one variable.
struct KerasSlot {
  std::string variable;
  std::string slot;
  // The list of Keras' optimizer with this slot of each trainable weight.
  std::string attribute;    // "_momentums"
  size_t weight_index = 0;  // In that list.
  size_t number = 0;        // Among the variables of the optimizer.
  TensorType type;
  double initial_value = 0;
  bool starts_as_variable = false;
};

// The variables of an optimizer of Keras 3, keras.Optimizer.variables. They are
// numbered in Keras' order: the iterations, the learning rate unless it is a
// schedule, the slots, and for Nadam the product of its momentums.
struct KerasOptimizerLayout {
  static constexpr size_t kIterations = 0;
  std::optional<size_t> learning_rate;
  std::vector<KerasSlot> slots;
  // Variables that Keras makes and does not use: int32 scalars, 0. Inside a
  // LossScaleOptimizer they are not among the variables of the optimizer.
  std::vector<size_t> unused;
  std::optional<size_t> momentum_product;  // NadamMomentumProduct(), a float.
  size_t count = 0;
};

// Returns the layout of an optimizer that trains the trainable weights of a
// built model.
//   kInvalidArgument  `optimizer` is invalid
absl::StatusOr<KerasOptimizerLayout> KerasOptimizerLayoutOf(
    const Layer& model, const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_OPTIMIZER_LAYOUT_H_
