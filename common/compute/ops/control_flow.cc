#include "common/compute/ops/control_flow.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/control_flow_gradients.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

// ---- Types

absl::StatusOr<int> CountAttribute(const TypeRuleArguments& arguments,
                                   absl::string_view name, size_t count_max) {
  ASSIGN_OR_RETURN(const int64_t count,
                   arguments.attributes.Get<int64_t>(name));
  if (count >= 0 && count <= static_cast<int64_t>(count_max)) {
    return static_cast<int>(count);
  }
  return internal::TypeError("attribute \"", name, "\" is ", count,
                             "; expected 0 to ", count_max);
}

// Returns the results of subgraph `index` for parameters of these types.
TypesOr ResultTypes(const TypeRuleArguments& arguments, int index,
                    absl::Span<const TensorType> parameters) {
  const Graph& graph = *arguments.subgraphs[index];
  ASSIGN_OR_RETURN(const NodeTypes types,
                   SpecializeTypes(graph, *arguments.registry, parameters));
  std::vector<TensorType> results;
  for (const NodeOutput& result : graph.results) {
    results.push_back(types[result.node][result.output]);
  }
  return results;
}

// Merges the known parts of two types that must be equal.
absl::StatusOr<TensorType> MergeTypes(const TensorType& a,
                                      const TensorType& b) {
  const auto shape = internal::MergeShapes(a.shape, b.shape);
  if (a.dtype == b.dtype && shape.ok()) return TensorType{a.dtype, *shape};
  return internal::TypeError(a.ToString(), " and ", b.ToString());
}

TensorType RowOf(const TensorType& type) {
  TensorType row = {type.dtype, {}};
  for (const int64_t dim : type.shape.dims().subspan(1)) row.shape.AddDim(dim);
  return row;
}

absl::StatusOr<TensorType> StackOf(int64_t length, const TensorType& row) {
  std::vector<int64_t> dims = {length};
  dims.insert(dims.end(), row.shape.dims().begin(), row.shape.dims().end());
  auto shape = Shape::Create(dims, /*allow_unknown=*/true);
  if (!shape.ok()) {
    return internal::TypeError("a stack of ", length, " ", row.ToString(), ": ",
                               shape.status().message());
  }
  return TensorType{row.dtype, *std::move(shape)};
}

absl::Status ExpectNumberOrBool(absl::string_view what,
                                absl::Span<const TensorType> types) {
  for (const TensorType& type : types) {
    if (type.dtype != DType::kString && type.dtype != DType::kInvalid) continue;
    return internal::TypeError(what, " must be numbers or bool, not ",
                               type.ToString());
  }
  return absl::OkStatus();
}

absl::Status ExpectPredicate(const TensorType& type) {
  if (type.dtype == DType::kBool && type.shape.rank() == 0) {
    return absl::OkStatus();
  }
  return internal::TypeError("the condition must be a bool scalar, not ",
                             type.ToString());
}

// Returns the types of the carry: those of `init`, merged with those of the
// body's first results.
TypesOr CarryTypes(absl::Span<const TensorType> init,
                   absl::Span<const TensorType> results) {
  if (results.size() < init.size()) {
    return internal::TypeError("the body returns ", results.size(),
                               " values for a carry of ", init.size());
  }
  RETURN_IF_ERROR(ExpectNumberOrBool("carries", init));
  std::vector<TensorType> types;
  for (size_t i = 0; i < init.size(); ++i) {
    auto merged = MergeTypes(init[i], results[i]);
    if (!merged.ok()) {
      return internal::TypeError("carry ", i, " is ", init[i].ToString(),
                                 ", but the body returns ",
                                 results[i].ToString());
    }
    types.push_back(*std::move(merged));
  }
  return types;
}

// Cond(predicate, captured...) -> results...
TypesOr CondParameters(const TypeRuleArguments& arguments) {
  return std::vector<TensorType>(arguments.inputs.begin() + 1,
                                 arguments.inputs.end());
}

TypesOr CondRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectPredicate(arguments.inputs[0]));
  const auto parameters = arguments.inputs.subspan(1);
  ASSIGN_OR_RETURN(std::vector<TensorType> types,
                   ResultTypes(arguments, 0, parameters));
  ASSIGN_OR_RETURN(const std::vector<TensorType> otherwise,
                   ResultTypes(arguments, 1, parameters));
  RETURN_IF_ERROR(ExpectNumberOrBool("results", types));
  if (types.size() != otherwise.size()) {
    return internal::TypeError("the branches return ", types.size(), " and ",
                               otherwise.size(), " values");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    auto merged = MergeTypes(types[i], otherwise[i]);
    if (!merged.ok()) {
      return internal::TypeError("the branches return ",
                                 merged.status().message(), " as result ", i);
    }
    types[i] = *std::move(merged);
  }
  return types;
}

// Scan(init..., inputs..., captured...) -> carry..., outputs..., and with
//   keep_steps the carry before each iteration.
TypesOr ScanParameters(const TypeRuleArguments& arguments) {
  const auto inputs = arguments.inputs;
  ASSIGN_OR_RETURN(const int carry_count,
                   CountAttribute(arguments, "carry_count", inputs.size()));
  ASSIGN_OR_RETURN(
      const int input_count,
      CountAttribute(arguments, "input_count", inputs.size() - carry_count));
  std::vector<TensorType> types(inputs.begin(), inputs.end());
  RETURN_IF_ERROR(
      ExpectNumberOrBool("inputs", inputs.subspan(carry_count, input_count)));
  for (int i = carry_count; i < carry_count + input_count; ++i) {
    RETURN_IF_ERROR(internal::ExpectRank(arguments, i, 1));
    types[i] = RowOf(types[i]);
  }
  return types;
}

absl::StatusOr<int64_t> ScanLength(const TypeRuleArguments& arguments,
                                   int begin, int end) {
  ASSIGN_OR_RETURN(int64_t length, arguments.attributes.Get<int64_t>("length"));
  if (length < -1 || (length == -1 && begin == end)) {
    return internal::TypeError("attribute \"length\" is ", length,
                               "; a Scan without inputs needs 0 or more");
  }
  if (length == -1) length = Shape::kUnknown;
  for (int i = begin; i < end; ++i) {
    auto merged =
        internal::MergeExtents(length, arguments.inputs[i].shape.dim(0));
    if (!merged.ok()) {
      return internal::TypeError("input ", i, " has ",
                                 arguments.inputs[i].shape.dim(0),
                                 " rows, not ", length);
    }
    length = *merged;
  }
  return length;
}

TypesOr ScanRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<TensorType> parameters,
                   ScanParameters(arguments));
  const int carry_count =
      static_cast<int>(arguments.attributes.GetOr<int64_t>("carry_count", 0));
  const int input_count =
      static_cast<int>(arguments.attributes.GetOr<int64_t>("input_count", 0));
  RETURN_IF_ERROR(arguments.attributes.Get<bool>("reverse").status());
  ASSIGN_OR_RETURN(const bool keep_steps,
                   arguments.attributes.Get<bool>("keep_steps"));
  ASSIGN_OR_RETURN(const int64_t length, ScanLength(arguments, carry_count,
                                                    carry_count + input_count));
  ASSIGN_OR_RETURN(const std::vector<TensorType> results,
                   ResultTypes(arguments, 0, parameters));
  ASSIGN_OR_RETURN(
      std::vector<TensorType> types,
      CarryTypes(arguments.inputs.subspan(0, carry_count), results));
  RETURN_IF_ERROR(ExpectNumberOrBool("results", results));
  std::vector<TensorType> rows(results.begin() + carry_count, results.end());
  if (keep_steps) rows.insert(rows.end(), types.begin(), types.end());
  for (const TensorType& row : rows) {
    ASSIGN_OR_RETURN(TensorType stack, StackOf(length, row));
    types.push_back(std::move(stack));
  }
  return types;
}

// While(init..., captured...) -> carry..., and with keep_steps the number of
//   iterations and the carry before each of maximum_iterations.
TypesOr WhileParameters(const TypeRuleArguments& arguments) {
  return std::vector<TensorType>(arguments.inputs.begin(),
                                 arguments.inputs.end());
}

TypesOr WhileRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(
      const int carry_count,
      CountAttribute(arguments, "carry_count", arguments.inputs.size()));
  ASSIGN_OR_RETURN(const int64_t iterations_max,
                   arguments.attributes.Get<int64_t>("maximum_iterations"));
  ASSIGN_OR_RETURN(const bool keep_steps,
                   arguments.attributes.Get<bool>("keep_steps"));
  if (iterations_max < -1 || (iterations_max == -1 && keep_steps)) {
    return internal::TypeError("attribute \"maximum_iterations\" is ",
                               iterations_max,
                               "; expected -1 or more, and a "
                               "limit if steps are kept");
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> conditions,
                   ResultTypes(arguments, 0, arguments.inputs));
  if (conditions.size() != 1) {
    return internal::TypeError("the condition returns ", conditions.size(),
                               " values; expected a bool scalar");
  }
  RETURN_IF_ERROR(ExpectPredicate(conditions[0]));
  ASSIGN_OR_RETURN(const std::vector<TensorType> results,
                   ResultTypes(arguments, 1, arguments.inputs));
  ASSIGN_OR_RETURN(
      std::vector<TensorType> types,
      CarryTypes(arguments.inputs.subspan(0, carry_count), results));
  if (results.size() != types.size()) {
    return internal::TypeError("the body returns ", results.size(),
                               " values for a carry of ", carry_count);
  }
  if (!keep_steps) return types;
  types.push_back({DType::kInt64, {}});
  for (int i = 0; i < carry_count; ++i) {
    ASSIGN_OR_RETURN(TensorType stack, StackOf(iterations_max, types[i]));
    types.push_back(std::move(stack));
  }
  return types;
}

// ---- Tracing

using Traced = GraphBuilder::Subgraph;

std::vector<Value> Joined(absl::Span<const Value> a,
                          absl::Span<const Value> b) {
  std::vector<Value> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  return values;
}

// Adds a parameter that nothing reads.
void AddUnusedParameter(const TensorType& type, Graph* graph) {
  const int index = static_cast<int>(graph->nodes.size());
  const std::string name = absl::StrCat("Unused_", index);
  graph->parameters.push_back(index);
  graph->nodes.push_back({.op = std::string(kParameterOp),
                          .name = name,
                          .attributes = {{"name", name},
                                         {"dtype", type.dtype},
                                         {"shape", type.shape}},
                          .outputs = {type}});
}

// Returns the graphs with common parameters: the first `own_count` of each,
// then one for each value that any graph has captured. Appends these values to
// `operands`.
Subgraphs WithCommonParameters(std::vector<Traced> traced, int own_count,
                               std::vector<Value>* operands) {
  std::vector<Value> captured;
  const auto is_same = [](Value a) {
    return [a](Value b) { return a.output() == b.output(); };
  };
  for (const Traced& one : traced) {
    for (const Value& value : one.captured) {
      if (std::none_of(captured.begin(), captured.end(), is_same(value))) {
        captured.push_back(value);
      }
    }
  }
  Subgraphs subgraphs;
  for (Traced& one : traced) {
    const std::vector<int> parameters = one.graph.parameters;
    one.graph.parameters.resize(own_count);
    for (const Value& value : captured) {
      const auto found = std::find_if(one.captured.begin(), one.captured.end(),
                                      is_same(value));
      if (found == one.captured.end()) {
        AddUnusedParameter(value.type(), &one.graph);
        continue;
      }
      one.graph.parameters.push_back(
          parameters[own_count + std::distance(one.captured.begin(), found)]);
    }
    subgraphs.push_back(std::make_shared<const Graph>(std::move(one.graph)));
  }
  operands->insert(operands->end(), captured.begin(), captured.end());
  return subgraphs;
}

// A node of control flow that is being traced. If an error was reported, the
// subgraphs are traced with poisoned values.
class TracedNode {
 public:
  TracedNode(absl::string_view op, absl::Span<const Value> operands,
             Attributes attributes)
      : op_(op),
        operands_(operands.begin(), operands.end()),
        own_count_(static_cast<int>(operands.size())),
        attributes_(std::move(attributes)),
        builder_(internal::BuilderOf(operands)) {}

  bool has_builder() const { return builder_ != nullptr; }

  // Traces a subgraph with a parameter for each of `own_types`: the types of
  // the operands that it receives.
  template <typename Function>
  std::vector<Value> AddSubgraph(absl::string_view name,
                                 absl::Span<const TensorType> own_types,
                                 Function function) {
    GraphBuilder& inner = builder_->BeginSubgraph(name);
    std::vector<Value> parameters;
    for (const TensorType& type : own_types) {
      parameters.push_back(
          inner.Parameter(absl::StrCat("x", parameters.size()), type));
    }
    const std::vector<Value> results = function(parameters);
    traced_.push_back(builder_->EndSubgraph(results));
    is_ok_ = is_ok_ && traced_.back().ok;
    return results;
  }

  // `skipped` is the number of operands that subgraphs do not receive.
  std::vector<Value> Finish(int skipped, int output_count) {
    if (is_ok_) {
      const Subgraphs subgraphs = WithCommonParameters(
          std::move(traced_), own_count_ - skipped, &operands_);
      std::vector<Value> outputs = builder_->OpWithOutputs(
          op_, operands_, std::move(attributes_), subgraphs);
      if (!outputs.empty() || output_count == 0) return outputs;
    }
    return std::vector<Value>(output_count, builder_->ValueOf(NodeOutput()));
  }

 private:
  const std::string op_;
  std::vector<Value> operands_;
  const int own_count_;
  Attributes attributes_;
  GraphBuilder* const builder_;
  std::vector<Traced> traced_;
  bool is_ok_ = true;
};

std::vector<TensorType> TypesOf(absl::Span<const Value> values) {
  std::vector<TensorType> types;
  for (const Value& value : values) types.push_back(value.type());
  return types;
}

}  // namespace

std::vector<Value> Cond(Value predicate,
                        absl::FunctionRef<std::vector<Value>()> then_branch,
                        absl::FunctionRef<std::vector<Value>()> else_branch) {
  TracedNode node("Cond", {predicate}, {});
  if (!node.has_builder()) return {};
  const std::vector<Value> results = node.AddSubgraph(
      "then", {}, [&](const std::vector<Value>&) { return then_branch(); });
  node.AddSubgraph("else", {},
                   [&](const std::vector<Value>&) { return else_branch(); });
  return node.Finish(/*skipped=*/1, static_cast<int>(results.size()));
}

ScanStep Scan(absl::Span<const Value> init, absl::Span<const Value> inputs,
              absl::FunctionRef<ScanStep(const ScanStep& step)> body,
              ScanOptions options) {
  const int carry_count = static_cast<int>(init.size());
  const std::vector<Value> operands = Joined(init, inputs);
  const Attributes attributes = {
      {"carry_count", int64_t{carry_count}},
      {"input_count", static_cast<int64_t>(inputs.size())},
      {"reverse", options.reverse},
      {"length", options.length},
      {"keep_steps", true}};
  TracedNode node("Scan", operands, attributes);
  if (!node.has_builder()) return {.carry = Joined(init, {}), .rows = {}};
  std::vector<TensorType> types = TypesOf(operands);
  // Invalid inputs are reported when the node is added.
  if (const auto rows =
          ScanParameters({.inputs = types, .attributes = attributes});
      rows.ok()) {
    types = *rows;
  }
  int row_count = 0;
  node.AddSubgraph("body", types, [&](const std::vector<Value>& parameters) {
    const auto first_row = parameters.begin() + carry_count;
    const ScanStep next = body({.carry = {parameters.begin(), first_row},
                                .rows = {first_row, parameters.end()}});
    row_count = static_cast<int>(next.rows.size());
    return Joined(next.carry, next.rows);
  });
  const std::vector<Value> outputs =
      node.Finish(/*skipped=*/0, 2 * carry_count + row_count);
  const auto first_row = outputs.begin() + carry_count;
  return {.carry = {outputs.begin(), first_row},
          .rows = {first_row, first_row + row_count}};
}

std::vector<Value> While(
    absl::Span<const Value> init,
    absl::FunctionRef<Value(const std::vector<Value>& carry)> condition,
    absl::FunctionRef<std::vector<Value>(const std::vector<Value>& carry)> body,
    WhileOptions options) {
  const int carry_count = static_cast<int>(init.size());
  const bool keep_steps = options.maximum_iterations >= 0;
  TracedNode node("While", init,
                  {{"carry_count", int64_t{carry_count}},
                   {"maximum_iterations", options.maximum_iterations},
                   {"keep_steps", keep_steps}});
  if (!node.has_builder()) return Joined(init, {});
  const std::vector<TensorType> types = TypesOf(init);
  node.AddSubgraph("condition", types, [&](const std::vector<Value>& carry) {
    return std::vector<Value>{condition(carry)};
  });
  node.AddSubgraph("body", types, body);
  std::vector<Value> outputs = node.Finish(
      /*skipped=*/0, keep_steps ? 2 * carry_count + 1 : carry_count);
  outputs.resize(carry_count);
  return outputs;
}

namespace internal {

void RegisterControlFlowOps(OpRegistry* registry) {
  OpSchema schema = {.name = "Cond",
                     .input_count_min = 1,
                     .input_count_max = OpSchema::kAnyCount,
                     .type_rule = CondRule,
                     .gradient_rule = CondGradient,
                     .subgraph_count = 2,
                     .subgraph_rule = CondParameters,
                     .low_precision = LowPrecisionPolicy::kDirect};
  registry->Register(schema);
  schema.name = "Scan";
  schema.input_count_min = 0;
  schema.type_rule = ScanRule;
  schema.gradient_rule = ScanGradient;
  schema.subgraph_count = 1;
  schema.subgraph_rule = ScanParameters;
  registry->Register(schema);
  schema.name = "While";
  schema.type_rule = WhileRule;
  schema.gradient_rule = WhileGradient;
  schema.subgraph_count = 2;
  schema.subgraph_rule = WhileParameters;
  registry->Register(schema);
}

}  // namespace internal
}  // namespace muster
