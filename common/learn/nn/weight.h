#ifndef COMMON_LEARN_NN_WEIGHT_H_
#define COMMON_LEARN_NN_WEIGHT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

namespace proto {
class VariableSpec;
enum VariableAggregation : int;
}  // namespace proto

// A variable of a layer. In the layer's Call() it converts to its value:
//
//   return x * gain_;
//
// Cheap to copy; copies refer to the same variable.
class Weight {
 public:
  Weight() = default;  // Empty; see Layer::AddWeight().

  // Reads the whole variable in the graph that is being traced. Returns a
  // poisoned value outside the layer's call.
  operator Value() const;  // NOLINT: math should read like math.

  // Reads the rows `indices`. Only these rows are transferred, wherever the
  // variable is stored.
  Value Rows(Value indices) const;

  // Updates the variable other than by gradients, for example moving averages.
  // Only valid in the layer's Call(). Reads that were traced earlier see the
  // previous value.
  void Assign(Value value) const;
  void AssignAdd(Value value) const;
  void AssignSub(Value value) const;

  // Makes reads of a layer return `value`, of the variable's type, until they
  // are restored by Substitute(Value()). For layers around others.
  void Substitute(Value value) const { state_->substitute = value; }
  // Must be called before the variable is created; see WeightOptions.
  void set_aggregation(proto::VariableAggregation aggregation) const;

  // For example "dense/kernel". Final when the layer is part of a model.
  const std::string& name() const { return state_->handle.name; }
  // True if gradients update the variable: it was created trainable, and its
  // layer is not frozen (Layer::set_trainable()).
  bool trainable() const;
  // True if the layer carries the value from batch to batch: Layer::states().
  bool is_state() const;
  // The penalty that training adds to the loss; empty if there is none.
  const Regularizer& regularizer() const { return state_->regularizer; }
  // How the variable is created. An initializer without a seed still has to be
  // given one.
  const proto::VariableSpec& spec() const { return *state_->spec; }
  const VariableHandle& handle() const { return state_->handle; }
  // Equal for copies of a weight, and lives as long as they do. Null if empty.
  std::shared_ptr<const void> identity() const { return state_; }

 private:
  friend class Layer;
  struct State {
    std::shared_ptr<proto::VariableSpec> spec;  // Never null.
    VariableHandle handle;
    bool is_frozen = false;
    GraphBuilder* builder = nullptr;  // Borrowed while the layer is called.
    // The dtype in which Call() reads a float32 variable.
    DType compute_dtype = DType::kFloat32;
    Regularizer regularizer;
    Value substitute;  // Of no graph: none.
  };
  explicit Weight(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void Rename(const std::string& name) const;

  // Casts to the dtype in which the layer computes.
  Value AsComputed(Value value) const;

  std::shared_ptr<State> state_;
};

// Returns the trainable ones of `weights`.
std::vector<Weight> TrainableOf(const std::vector<Weight>& weights);

}  // namespace muster

#endif  // COMMON_LEARN_NN_WEIGHT_H_
