#include "common/compute/ops/testing/graph_interpreter.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::StatusOr<Tensor> VariableOf(const Node& node,
                                  const InterpreterOptions& options) {
  ASSIGN_OR_RETURN(const std::string name,
                   node.attributes.Get<std::string>(kVariableAttribute));
  const auto found = options.variables.find(name);
  if (found == options.variables.end()) {
    return absl::NotFoundError(absl::StrCat("variable \"", name, "\""));
  }
  return found->second;
}

// Interprets a subgraph whenever it is run.
class InterpretedSubgraph : public CompiledSubgraph {
 public:
  explicit InterpretedSubgraph(std::shared_ptr<const Graph> graph)
      : graph_(std::move(graph)) {}

  absl::Status Run(absl::Span<const Tensor> arguments,
                   const KernelArguments& step,
                   std::vector<Tensor>* results) override {
    ASSIGN_OR_RETURN(*results, Interpret(*graph_, arguments,
                                         {.step_seed = step.step_seed,
                                          .example_offset = step.example_offset,
                                          .variables = {}}));
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Graph> graph_;
};

absl::Status RunNode(const Node& node, absl::Span<const TensorType> types,
                     const InterpreterOptions& options,
                     std::vector<Tensor> inputs, std::vector<Tensor>* outputs) {
  KernelSpec spec = {.op = node.op,
                     .attributes = node.attributes,
                     .inputs = {},
                     .outputs = {types.begin(), types.end()}};
  spec.subgraphs = InterpretedSubgraphs(node.subgraphs);
  if (node.op == "GatherVariable") {
    // A lookup in a variable is a Gather from its value.
    ASSIGN_OR_RETURN(const Tensor value, VariableOf(node, options));
    inputs.insert(inputs.begin(), value);
    spec.op = "Gather";
  }
  std::vector<const Tensor*> input_pointers;
  for (const Tensor& input : inputs) {
    spec.inputs.push_back(input.type());
    input_pointers.push_back(&input);
  }
  std::vector<Tensor*> output_pointers;
  for (const TensorType& type : types) {
    outputs->emplace_back(type.dtype, type.shape);
  }
  for (Tensor& output : *outputs) output_pointers.push_back(&output);
  ASSIGN_OR_RETURN(const auto kernel, ReferenceKernels().Create(spec, 1));
  return kernel->Run({.inputs = input_pointers,
                      .outputs = output_pointers,
                      .step_seed = options.step_seed,
                      .example_offset = options.example_offset});
}

}  // namespace

std::vector<std::shared_ptr<CompiledSubgraph>> InterpretedSubgraphs(
    const Subgraphs& subgraphs) {
  std::vector<std::shared_ptr<CompiledSubgraph>> interpreted;
  for (const auto& subgraph : subgraphs) {
    interpreted.push_back(std::make_shared<InterpretedSubgraph>(subgraph));
  }
  return interpreted;
}

absl::StatusOr<std::vector<Tensor>> Interpret(
    const Graph& graph, absl::Span<const Tensor> arguments,
    const InterpreterOptions& options) {
  std::vector<TensorType> argument_types;
  for (const Tensor& argument : arguments) {
    argument_types.push_back(argument.type());
  }
  ASSIGN_OR_RETURN(const auto types,
                   SpecializeTypes(graph, BuiltinOps(), argument_types));
  std::vector<std::vector<Tensor>> values(graph.nodes.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    values[graph.parameters[i]] = {arguments[i]};
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool is_update = node.outputs.empty();
    if (node.op == kParameterOp || is_update) continue;
    if (node.op == kConstantOp) {
      ASSIGN_OR_RETURN(Tensor value, node.attributes.Get<Tensor>("value"));
      values[i] = {std::move(value)};
      continue;
    }
    if (node.op == "ReadVariable") {
      ASSIGN_OR_RETURN(Tensor value, VariableOf(node, options));
      values[i] = {std::move(value)};
      continue;
    }
    std::vector<Tensor> inputs;
    for (const NodeOutput& input : node.inputs) {
      inputs.push_back(values[input.node][input.output]);
    }
    RETURN_IF_ERROR(
        RunNode(node, types[i], options, std::move(inputs), &values[i]));
  }
  std::vector<Tensor> results;
  for (const NodeOutput& result : graph.results) {
    results.push_back(values[result.node][result.output]);
  }
  return results;
}

absl::StatusOr<std::vector<Tensor>> EvaluateAll(
    const TracedFunction& function, absl::Span<const Tensor> arguments,
    const InterpretOptions& options) {
  GraphBuilder builder(&BuiltinOps(), "evaluated");
  std::vector<Value> parameters;
  for (const Tensor& argument : arguments) {
    TensorType type = argument.type();
    for (int axis = 0; options.unknown_extents && axis < type.shape.rank();
         ++axis) {
      type.shape.set_dim(axis, Shape::kUnknown);
    }
    parameters.push_back(
        builder.Parameter(absl::StrCat("x", parameters.size()), type));
  }
  for (const Value& result : function(parameters)) builder.AddResult(result);
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Build());
  RETURN_IF_ERROR(VerifyGraph(graph, BuiltinOps()));
  return Interpret(graph, arguments, options.run);
}

absl::StatusOr<Tensor> Evaluate(
    const std::function<Value(const std::vector<Value>&)>& function,
    absl::Span<const Tensor> arguments, const InterpretOptions& options) {
  const auto trace = [&](const std::vector<Value>& inputs) {
    return std::vector<Value>{function(inputs)};
  };
  ASSIGN_OR_RETURN(std::vector<Tensor> results,
                   EvaluateAll(trace, arguments, options));
  return std::move(results[0]);
}

absl::StatusOr<Tensor> EvaluateOp(const std::string& op,
                                  absl::Span<const Tensor> arguments,
                                  Attributes attributes) {
  GraphBuilder builder(&BuiltinOps(), op);
  std::vector<Value> parameters;
  for (const Tensor& argument : arguments) {
    parameters.push_back(builder.Parameter("x", argument.type()));
  }
  builder.AddResult(builder.Op(op, parameters, std::move(attributes)));
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Build());
  ASSIGN_OR_RETURN(std::vector<Tensor> results, Interpret(graph, arguments));
  return std::move(results[0]);
}

}  // namespace muster
