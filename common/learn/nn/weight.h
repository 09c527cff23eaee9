#ifndef COMMON_LEARN_NN_WEIGHT_H_
#define COMMON_LEARN_NN_WEIGHT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/regularizers.h"
#include "proto/variable.pb.h"

namespace muster {

// A variable of a layer. In the layer's Call() it stands for its value:
//
//   return x * gain_;
//
// Cheap to copy; copies are the same weight.
class Weight {
 public:
  Weight() = default;  // No weight; made by Layer::AddWeight().

  // Reads the whole value in the graph that is being traced. A poisoned value
  // outside of a layer's call.
  operator Value() const;  // NOLINT: math should read like math.

  // Rows `indices`: moves only those, wherever the variable lives.
  Value Rows(Value indices) const;

  // Changes the value, for what training keeps beside gradients: moving means.
  // Only in the layer's Call(); reads traced before see the value before.
  void Assign(Value value) const;
  void AssignAdd(Value value) const;
  void AssignSub(Value value) const;

  // "dense/kernel", once the layer has its place in a model.
  const std::string& name() const { return state_->spec.name(); }
  // Whether gradients train it: it was made for that, and its layer is not
  // frozen (Layer::set_trainable()).
  bool trainable() const {
    return state_->spec.trainable() && !state_->is_frozen;
  }
  // What training adds to the loss for it; none if it has none.
  const Regularizer& regularizer() const { return state_->regularizer; }
  // How the variable is made. An initializer without a seed is to get one.
  const proto::VariableSpec& spec() const { return state_->spec; }
  const VariableHandle& handle() const { return state_->handle; }

 private:
  friend class Layer;
  struct State {
    proto::VariableSpec spec;
    VariableHandle handle;
    bool is_frozen = false;
    GraphBuilder* builder = nullptr;  // Borrowed while the layer is called.
    // What readers see of a float32 variable.
    DType compute_dtype = DType::kFloat32;
    Regularizer regularizer;
  };
  explicit Weight(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void Rename(const std::string& name) const {
    state_->spec.set_name(name);
    state_->handle.name = name;
  }

  // In the dtype in which the layer computes.
  Value AsComputed(Value value) const;

  std::shared_ptr<State> state_;
};

// Those of `weights` that training changes.
std::vector<Weight> TrainableOf(const std::vector<Weight>& weights);

}  // namespace muster

#endif  // COMMON_LEARN_NN_WEIGHT_H_
