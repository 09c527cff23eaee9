#include "common/compute/stablehlo/graph_translator.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"

namespace muster {
namespace {

absl::Status RefuseNode(const Node& node, absl::string_view reason) {
  return absl::UnimplementedError(
      absl::StrCat(node.op, " \"", node.name,
                   "\" has no translation to StableHLO: ", reason));
}

absl::Status CheckNode(const Node& node) {
  for (const TensorType& type : node.outputs) {
    if (type.dtype == DType::kString) {
      return RefuseNode(node,
                        "devices have no strings; compute what depends on "
                        "them in the dataset");
    }
  }
  if (node.op == kParameterOp || node.op == kConstantOp) {
    return absl::OkStatus();
  }
  const HloTranslation* const translation = FindHloTranslation(node.op);
  if (translation == nullptr) return RefuseNode(node, "the op is unknown");
  if (!translation->refusal.empty()) {
    return RefuseNode(node, translation->refusal);
  }
  return absl::OkStatus();
}

bool IsNarrow(absl::string_view element) {
  return element == "bf16" || element == "f16";
}

// Translates a node that computes its outputs from its inputs.
absl::StatusOr<HloValues> TranslateOp(const HloStepContext& step,
                                      const Graph& graph, const Node& node,
                                      const OpSchema& schema,
                                      HloValues inputs) {
  const bool widens =
      schema.low_precision == LowPrecisionPolicy::kThroughFloat32;
  std::vector<HloType> outputs;
  for (const TensorType& type : node.outputs) {
    outputs.push_back(HloTypeOf(type));
    if (widens && IsNarrow(outputs.back().element)) {
      outputs.back().element = "f32";
    }
  }
  for (HloValue& input : inputs) {
    if (widens && IsNarrow(input.type.element)) input = Convert(input, "f32");
  }
  const KernelSpec spec = SpecOf(graph, node, schema);
  const HloNode translated(&step, &spec, std::move(inputs), outputs);
  const HloTranslation& translation = *FindHloTranslation(node.op);
  HloValues values;
  if (translation.one != nullptr) {
    values.push_back(translation.one(translated));
  } else {
    auto results = translation.general(translated);
    if (!results.ok()) {
      return absl::Status(results.status().code(),
                          absl::StrCat(node.op, " \"", node.name,
                                       "\": ", results.status().message()));
    }
    values = *std::move(results);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = Convert(values[i], HloElementOf(node.outputs[i].dtype));
  }
  return values;
}

}  // namespace

int HloNode::AxisOf(int rank, int64_t fallback) const {
  const int64_t axis = Attribute<int64_t>("axis", fallback);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int64_t> HloNode::AxesOf(int rank, absl::string_view name) const {
  return NormalizedAxes(Attribute<std::vector<int64_t>>(name, {}), rank);
}

absl::StatusOr<HloValues> TranslateGraph(const HloStepContext& step,
                                         const Graph& typed,
                                         const HloValues& parameters,
                                         HloVariables* variables) {
  RETURN_IF_ERROR(CheckTranslatable(typed));
  std::vector<HloValues> values(typed.nodes.size());
  size_t next_parameter = 0;
  for (const int parameter : typed.parameters) {
    values[parameter] = {parameters[next_parameter++]};
  }
  for (size_t i = 0; i < typed.nodes.size(); ++i) {
    const Node& node = typed.nodes[i];
    if (node.op == kParameterOp) continue;
    if (node.op == kConstantOp) {
      ASSIGN_OR_RETURN(const Tensor value,
                       node.attributes.Get<Tensor>("value"));
      values[i] = {step.builder->Constant(value)};
      continue;
    }
    HloValues inputs;
    for (const NodeOutput& input : node.inputs) {
      inputs.push_back(values[input.node][input.output]);
    }
    const OpSchema& schema = BuiltinOps().FindOrPlain(node.op);
    if (schema.uses_variable() || schema.effect == OpEffect::kDescribeStep) {
      if (variables == nullptr) {
        return RefuseNode(node, "there are no variables");
      }
      ASSIGN_OR_RETURN(values[i], variables->Translate(typed, node, inputs));
      continue;
    }
    ASSIGN_OR_RETURN(values[i],
                     TranslateOp(step, typed, node, schema, std::move(inputs)));
  }
  HloValues results;
  for (const NodeOutput& result : typed.results) {
    results.push_back(values[result.node][result.output]);
  }
  return results;
}

absl::StatusOr<std::string> GraphToStableHlo(const Graph& typed,
                                             uint64_t step_seed,
                                             int64_t example_offset) {
  HloBuilder builder;
  HloValues parameters;
  for (const int parameter : typed.parameters) {
    const TensorType& type = typed.nodes[parameter].outputs[0];
    if (type.dtype == DType::kString) {
      return RefuseNode(typed.nodes[parameter], "devices have no strings");
    }
    parameters.push_back(builder.AddParameter(HloTypeOf(type)));
  }
  const HloStepContext step = {
      .builder = &builder,
      .step_seed = builder.Constant(
          Tensor::Scalar<int64_t>(static_cast<int64_t>(step_seed))),
      .example_offset =
          builder.Constant(Tensor::Scalar<int64_t>(example_offset))};
  ASSIGN_OR_RETURN(const HloValues results,
                   TranslateGraph(step, typed, parameters, nullptr));
  return builder.Build("graph", step.replica_count, results);
}

absl::Status CheckTranslatable(const Graph& graph) {
  for (const Node& node : graph.nodes) RETURN_IF_ERROR(CheckNode(node));
  return absl::OkStatus();
}

}  // namespace muster
