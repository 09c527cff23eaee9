#include "common/nn/weight.h"

#include "common/graph/graph_builder.h"
#include "common/ops/variable_ops.h"

namespace muster {

Weight::operator Value() const {
  if (state_ == nullptr || state_->builder == nullptr) return Value();
  return ReadVariable(*state_->builder, state_->handle);
}

Value Weight::Rows(Value indices) const {
  if (state_ == nullptr) return Value();
  return GatherVariable(state_->handle, indices);
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

}  // namespace muster
