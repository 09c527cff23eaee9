#include "common/compute/graph/graph_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {

const TensorType& Value::type() const {
  static const TensorType* const kInvalidType = new TensorType;
  return ok() ? builder_->graph().TypeOf(output_) : *kInvalidType;
}

GraphBuilder::GraphBuilder(const OpRegistry* registry, absl::string_view name)
    : registry_(registry) {
  graph_.name = std::string(name);
}

Value GraphBuilder::Parameter(absl::string_view name, const TensorType& type,
                              Attributes attributes) {
  attributes.Set("name", std::string(name));
  attributes.Set("dtype", type.dtype);
  attributes.Set("shape", type.shape);
  const Value value = Op(kParameterOp, {}, std::move(attributes));
  if (value.ok()) graph_.parameters.push_back(value.output().node);
  return value;
}

Value GraphBuilder::Constant(Tensor value) {
  return Op(kConstantOp, {}, {{"value", std::move(value)}});
}

Value GraphBuilder::Op(absl::string_view op, absl::Span<const Value> inputs,
                       Attributes attributes) {
  const std::vector<Value> outputs =
      OpWithOutputs(op, inputs, std::move(attributes));
  if (outputs.empty()) return Poisoned();
  return outputs[0];
}

std::vector<Value> GraphBuilder::OpWithOutputs(absl::string_view op,
                                               absl::Span<const Value> inputs,
                                               Attributes attributes) {
  const std::string name = UniqueName(op);
  Node node = {.op = std::string(op),
               .name = name,
               .control_inputs = run_after_,
               .attributes = std::move(attributes)};
  std::vector<TensorType> input_types;
  for (const Value& input : inputs) {
    if (input.builder() != this) {
      ReportError(absl::InvalidArgumentError(absl::StrCat(
          op, " \"", name, "\": input ", input_types.size(),
          input.builder() == nullptr ? " has no value"
                                     : " belongs to another graph")));
      return {};
    }
    if (!input.ok()) return {};
    node.inputs.push_back(input.output());
    input_types.push_back(input.type());
  }
  auto types = registry_->InferTypes(
      op, name, {.inputs = input_types, .attributes = node.attributes});
  if (!types.ok()) {
    ReportError(types.status());
    return {};
  }
  node.outputs = *std::move(types);
  OrderEffect(registry_->Find(op)->effect, &node);

  const int index = static_cast<int>(graph_.nodes.size());
  std::vector<Value> outputs;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
    outputs.push_back(Value(this, {index, i}));
  }
  graph_.nodes.push_back(std::move(node));
  return outputs;
}

void GraphBuilder::OrderEffect(OpEffect effect, Node* node) {
  const int index = static_cast<int>(graph_.nodes.size());
  const auto wait_for = [node](int earlier) {
    if (earlier >= 0) node->control_inputs.push_back(earlier);
  };
  switch (effect) {
    case OpEffect::kNone:
      return;
    case OpEffect::kReadVariable:
    case OpEffect::kUpdateVariable:
      OrderVariableEffect(effect, node);
      return;
    case OpEffect::kDescribeStep:
      wait_for(last_description_);
      last_description_ = index;
      return;
    case OpEffect::kCommunicate:
      wait_for(last_communication_);
      last_communication_ = index;
      return;
  }
}

void GraphBuilder::OrderVariableEffect(OpEffect effect, Node* node) {
  const int index = static_cast<int>(graph_.nodes.size());
  VariableOrder& order = variable_orders_[node->attributes.GetOr<std::string>(
      kVariableAttribute, "")];
  const auto wait_for = [node](int earlier) {
    if (earlier >= 0) node->control_inputs.push_back(earlier);
  };
  if (effect == OpEffect::kReadVariable) {
    wait_for(order.last_update);
    order.reads_since.push_back(index);
  } else {
    wait_for(last_description_);
    if (order.reads_since.empty()) wait_for(order.last_update);
    for (const int read : order.reads_since) wait_for(read);
    order = {.last_update = index, .reads_since = {}};
  }
}

void GraphBuilder::RunAfter(Value value) {
  if (value.ok()) run_after_.push_back(value.output().node);
}

void GraphBuilder::AddResult(Value value) {
  if (value.builder() != this) {
    ReportError(absl::InvalidArgumentError(
        absl::StrCat("result ", graph_.results.size(), " of graph \"",
                     graph_.name, "\" is not a value of this graph")));
    return;
  }
  graph_.results.push_back(value.output());
}

void GraphBuilder::ReportError(absl::Status status) { status_.Update(status); }

absl::StatusOr<Graph> GraphBuilder::Build() && {
  RETURN_IF_ERROR(status_);
  return std::move(graph_);
}

std::string GraphBuilder::UniqueName(absl::string_view base) {
  std::string name = absl::StrCat(scope_, base);
  const int count = name_counts_[name]++;
  return count == 0 ? name : absl::StrCat(name, "_", count);
}

GraphBuilder::NameScope::NameScope(GraphBuilder* builder,
                                   absl::string_view scope)
    : builder_(builder), outer_(builder->scope_) {
  builder_->scope_ = absl::StrCat(outer_, scope, "/");
}

GraphBuilder::NameScope::~NameScope() { builder_->scope_ = outer_; }

}  // namespace muster
