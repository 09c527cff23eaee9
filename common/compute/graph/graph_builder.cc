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
  const std::vector<Value> values =
      AddNode(kParameterOp, {}, std::move(attributes), {});
  if (values.empty()) return Poisoned();
  graph_.parameters.push_back(values[0].output().node);
  return values[0];
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
                                               Attributes attributes,
                                               Subgraphs subgraphs) {
  return Innermost().AddNode(op, inputs, std::move(attributes),
                             std::move(subgraphs));
}

std::vector<Value> GraphBuilder::AddNode(absl::string_view op,
                                         absl::Span<const Value> inputs,
                                         Attributes attributes,
                                         Subgraphs subgraphs) {
  if (outer_ != nullptr && !registry_->FindOrPlain(op).may_be_in_subgraph()) {
    return AddNodeOutside(op, inputs, std::move(attributes));
  }
  const std::string name = UniqueName(op);
  Node node = {.op = std::string(op),
               .name = name,
               .control_inputs = run_after_,
               .attributes = std::move(attributes),
               .subgraphs = std::move(subgraphs)};
  std::vector<TensorType> input_types;
  for (const Value& outer : inputs) {
    const Value input = Capture(outer);
    if (input.builder() == nullptr) {
      ReportError(absl::InvalidArgumentError(absl::StrCat(
          op, " \"", name, "\": input ", input_types.size(),
          outer.builder() == nullptr ? " has no value"
                                     : " belongs to another graph")));
      return {};
    }
    if (!input.ok()) return {};
    node.inputs.push_back(input.output());
    input_types.push_back(input.type());
  }
  auto types = registry_->InferTypes(op, name,
                                     {.inputs = input_types,
                                      .attributes = node.attributes,
                                      .subgraphs = node.subgraphs});
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

std::vector<Value> GraphBuilder::AddNodeOutside(absl::string_view op,
                                                absl::Span<const Value> inputs,
                                                Attributes attributes) {
  const OpEffect effect = registry_->FindOrPlain(op).effect;
  if (!inputs.empty() ||
      (effect != OpEffect::kNone && effect != OpEffect::kReadVariable)) {
    ReportError(absl::InvalidArgumentError(absl::StrCat(
        op, " \"", UniqueName(op),
        "\" cannot be part of a branch or of the body of a loop; return its "
        "operands as results, and trace it after the loop")));
    return {};
  }
  std::vector<Value> values;
  for (const Value& value :
       outer_->AddNode(op, inputs, std::move(attributes), {})) {
    values.push_back(Capture(value));
  }
  return values;
}

GraphBuilder& GraphBuilder::Innermost() {
  GraphBuilder* builder = this;
  while (builder->has_ended_) builder = builder->outer_;
  while (builder->inner_ != nullptr) builder = builder->inner_;
  return *builder;
}

Value GraphBuilder::Capture(Value value) {
  if (value.builder() == this) return value;
  if (outer_ == nullptr) return Value();
  const Value outer = outer_->Capture(value);
  if (!outer.ok()) return outer;
  const NodeOutput output = outer.output();
  const auto [found, is_new] =
      captured_as_.try_emplace({output.node, output.output});
  if (is_new) {
    found->second =
        Parameter(absl::StrCat("captured_", captured_.size()), outer.type());
    captured_.push_back(outer);
  }
  return found->second;
}

GraphBuilder& GraphBuilder::BeginSubgraph(absl::string_view name) {
  GraphBuilder& outer = Innermost();
  outer.subgraphs_.push_back(std::make_unique<GraphBuilder>(registry_, name));
  GraphBuilder& inner = *outer.subgraphs_.back();
  inner.outer_ = &outer;
  outer.inner_ = &inner;
  return inner;
}

GraphBuilder::Subgraph GraphBuilder::EndSubgraph(
    absl::Span<const Value> results) {
  GraphBuilder& inner = Innermost();
  bool ok = true;
  for (const Value& result : results) {
    const Value captured = inner.Capture(result);
    ok = ok && captured.ok();
    inner.AddResult(captured);
  }
  GraphBuilder& outer = *inner.outer_;
  outer.inner_ = nullptr;
  inner.has_ended_ = true;
  outer.ReportError(inner.status_);
  return {inner.graph_, inner.captured_, ok && inner.status_.ok()};
}

std::vector<Value> GraphBuilder::Inline(const Graph& graph,
                                        absl::Span<const Value> arguments) {
  GraphBuilder& builder = Innermost();
  std::vector<std::vector<Value>> values(graph.nodes.size());
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    values[graph.parameters[i]] = {arguments[i]};
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == kParameterOp) continue;
    std::vector<Value> inputs;
    for (const NodeOutput& input : node.inputs) {
      inputs.push_back(values[input.node][input.output]);
    }
    values[i] =
        builder.AddNode(node.op, inputs, node.attributes, node.subgraphs);
    values[i].resize(node.outputs.size(), builder.Poisoned());
  }
  std::vector<Value> results;
  for (const NodeOutput& result : graph.results) {
    results.push_back(values[result.node][result.output]);
  }
  return results;
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
