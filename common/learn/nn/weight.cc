#include "common/learn/nn/weight.h"

#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/index_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/variable_ops.h"
#include "common/core/tensor/dtype.h"
#include "proto/variable.pb.h"

namespace muster {

Weight::operator Value() const {
  if (state_ == nullptr || state_->builder == nullptr) return Value();
  if (state_->substitute.ok()) return AsComputed(state_->substitute);
  return AsComputed(ReadVariable(*state_->builder, state_->handle));
}

Value Weight::Rows(Value indices) const {
  if (state_ == nullptr) return Value();
  if (state_->substitute.ok()) {
    return AsComputed(Gather(state_->substitute, indices));
  }
  return AsComputed(GatherVariable(state_->handle, indices));
}

Value Weight::AsComputed(Value value) const {
  const bool is_cast = value.ok() && value.dtype() == DType::kFloat32 &&
                       state_->compute_dtype != DType::kFloat32;
  return is_cast ? Cast(value, state_->compute_dtype) : value;
}

void Weight::Assign(Value value) const {
  if (state_ != nullptr) AssignVariable(state_->handle, value);
}

void Weight::AssignAdd(Value value) const {
  if (state_ != nullptr) AssignAddVariable(state_->handle, value);
}

void Weight::AssignSub(Value value) const {
  if (state_ != nullptr) AssignSubVariable(state_->handle, value);
}

void Weight::set_aggregation(proto::VariableAggregation aggregation) const {
  state_->spec->set_aggregation(aggregation);
}

bool Weight::trainable() const {
  return state_->spec->trainable() && !state_->is_frozen;
}

bool Weight::is_state() const { return state_->spec->is_optimizer_state(); }

void Weight::Rename(const std::string& name) const {
  state_->spec->set_name(name);
  state_->handle.name = name;
}

std::vector<Weight> TrainableOf(const std::vector<Weight>& weights) {
  std::vector<Weight> trainable;
  for (const Weight& weight : weights) {
    if (weight.trainable()) trainable.push_back(weight);
  }
  return trainable;
}

}  // namespace muster
