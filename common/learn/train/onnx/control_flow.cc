// Translations of branches and loops. Their subgraphs become graphs inside the
// nodes, which use values of the graph around them by name.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/loops.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

// A subgraph of a node that becomes a graph of ONNX.
class Body {
 public:
  // `graph` is borrowed.
  Body(OnnxNode& node, const Graph* graph, absl::string_view name)
      : target_(&node.translator().target(), name),
        name_(absl::StrCat(node.node().name, "/", name)),
        translator_(graph, &target_) {}

  // Declares an input of ONNX alone.
  void AddInput(absl::string_view name, DType dtype) {
    Declare({dtype, {}}, target_.UniqueName(absl::StrCat(name_, "/", name)));
  }
  // Declares an input, which is the next parameter.
  void AddParameter() {
    const Graph& graph = translator_.graph();
    const Node& node = graph.nodes[graph.parameters[parameter_count_]];
    const TensorType& type = node.outputs[0];
    const std::string name =
        target_.UniqueName(absl::StrCat(name_, "/", node.name));
    Declare(type, name);
    Bind({.status = absl::OkStatus(),
          .type = type,
          .names = {{InOrder(type.shape.rank()), name}}});
  }
  // Sets the next parameter to a value of the graph around this one.
  void Bind(OnnxValue value) {
    translator_.Bind(parameter_count_++, std::move(value));
  }
  // Declares an output.
  void AddOutput(const TensorType& type, const std::string& value) {
    // An output is computed in the graph, and is not declared twice.
    const std::string name =
        target_
            .AddNode("Identity", absl::StrCat(name_, "/output"), {value}, {}, 1)
            .front();
    *target_.message().add_output() = OnnxDeclaration(
        name, type, std::vector<std::string>(type.shape.rank()));
  }
  // After Translate().
  absl::Status AddResults() {
    for (const NodeOutput& result : translator_.graph().results) {
      ASSIGN_OR_RETURN(const std::string name, translator_.NameOf(result));
      AddOutput(translator_.ValueOf(result).type, name);
    }
    return absl::OkStatus();
  }
  proto::OnnxGraph Finish() {
    DropUnused(&target_.message());
    return std::move(target_.message());
  }

  GraphTranslator& translator() { return translator_; }
  OnnxGraph& target() { return target_; }

 private:
  void Declare(const TensorType& type, const std::string& name) {
    *target_.message().add_input() = OnnxDeclaration(
        name, type, std::vector<std::string>(type.shape.rank()));
  }

  OnnxGraph target_;
  const std::string name_;
  GraphTranslator translator_;
  int parameter_count_ = 0;
};

// Adds the nodes of the condition of a loop to `target`, and returns the name
// of its result.
absl::StatusOr<std::string> EmitCondition(const Graph& condition,
                                          std::vector<OnnxValue> parameters,
                                          OnnxGraph* target) {
  GraphTranslator translator(&condition, target);
  for (size_t i = 0; i < parameters.size(); ++i) {
    translator.Bind(static_cast<int>(i), std::move(parameters[i]));
  }
  translator.Translate();
  return translator.NameOf(condition.results[0]);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EmitScan(OnnxNode& node,
                                                  const ScanParts& parts) {
  Body body(node, parts.body, "body");
  for (size_t i = 0; i < parts.carry.size() + parts.rows.size(); ++i) {
    body.AddParameter();
  }
  for (const OnnxValue& value : parts.captured) body.Bind(value);
  body.translator().Translate();
  RETURN_IF_ERROR(body.AddResults());

  std::vector<std::string> inputs = parts.carry;
  inputs.insert(inputs.end(), parts.rows.begin(), parts.rows.end());
  const int result_count = static_cast<int>(parts.body->results.size());
  const size_t row_result_count = result_count - parts.carry.size();
  std::vector<proto::OnnxAttribute> attributes = {
      OnnxBody("body", body.Finish()),
      OnnxInt("num_scan_inputs", static_cast<int64_t>(parts.rows.size()))};
  if (parts.reverse) {
    attributes.push_back(OnnxInts("scan_input_directions",
                                  std::vector<int64_t>(parts.rows.size(), 1)));
  }
  if (parts.reverse_outputs) {
    attributes.push_back(OnnxInts("scan_output_directions",
                                  std::vector<int64_t>(row_result_count, 1)));
  }
  return node.EmitAll("Scan", inputs, std::move(attributes), result_count);
}

absl::Status CondToOnnx(OnnxNode& node) {
  std::vector<proto::OnnxAttribute> branches;
  for (const int branch : {0, 1}) {
    const char* const name = branch == 0 ? "then_branch" : "else_branch";
    Body body(node, node.node().subgraphs[branch].get(), name);
    for (int i = 1; i < node.input_count(); ++i) body.Bind(node.input(i));
    body.translator().Translate();
    RETURN_IF_ERROR(body.AddResults());
    branches.push_back(OnnxBody(name, body.Finish()));
  }
  const std::vector<std::string> outputs = node.EmitAll(
      "If", {node.Input(0)}, std::move(branches), node.output_count());
  for (int i = 0; i < node.output_count(); ++i) node.SetOutput(i, outputs[i]);
  return absl::OkStatus();
}

absl::Status ScanToOnnx(OnnxNode& node) {
  const auto carry_count = node.Attribute<int64_t>("carry_count");
  const auto row_count = node.Attribute<int64_t>("input_count");
  if (row_count == 0) {
    return node.Refuse(
        "ONNX's Scan needs rows to iterate over; give the loop an input, such "
        "as the numbers of the iterations");
  }
  const bool reverse = node.Attribute<bool>("reverse");
  ScanParts parts{.body = node.node().subgraphs[0].get(),
                  .reverse = reverse,
                  .reverse_outputs = reverse};
  for (int i = 0; i < node.input_count(); ++i) {
    if (i < carry_count) {
      parts.carry.push_back(node.Input(i));
    } else if (i < carry_count + row_count) {
      parts.rows.push_back(node.Input(i));
    } else {
      parts.captured.push_back(node.input(i));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                   EmitScan(node, parts));
  // Outputs beyond these are for gradients.
  for (size_t i = 0; i < outputs.size(); ++i) {
    node.SetOutput(static_cast<int>(i), outputs[i]);
  }
  return absl::OkStatus();
}

absl::Status WhileToOnnx(OnnxNode& node) {
  const auto carry_count = node.Attribute<int64_t>("carry_count");
  const auto iterations_max = node.Attribute<int64_t>("maximum_iterations", -1);
  const Graph& condition = *node.node().subgraphs[0];
  std::vector<OnnxValue> parameters;
  std::vector<OnnxValue> captured;
  std::vector<std::string> inputs(2);
  Body body(node, node.node().subgraphs[1].get(), "body");
  body.AddInput("iteration", DType::kInt64);
  body.AddInput("condition", DType::kBool);
  for (int i = 0; i < node.input_count(); ++i) {
    parameters.push_back(node.input(i));
    if (i < carry_count) {
      inputs.push_back(node.Input(i));
      body.AddParameter();
    } else {
      captured.push_back(node.input(i));
      body.Bind(node.input(i));
    }
  }
  if (iterations_max >= 0) {
    inputs[0] = node.Weight(Tensor::Scalar<int64_t>(iterations_max));
  }
  ASSIGN_OR_RETURN(inputs[1], EmitCondition(condition, std::move(parameters),
                                            &node.translator().target()));

  // The condition of the next iteration is the body's first output.
  body.translator().Translate();
  std::vector<OnnxValue> next;
  for (const NodeOutput& result : body.translator().graph().results) {
    RETURN_IF_ERROR(body.translator().NameOf(result).status());
    next.push_back(body.translator().ValueOf(result));
  }
  next.insert(next.end(), captured.begin(), captured.end());
  ASSIGN_OR_RETURN(const std::string goes_on,
                   EmitCondition(condition, std::move(next), &body.target()));
  body.AddOutput({DType::kBool, {}}, goes_on);
  RETURN_IF_ERROR(body.AddResults());
  const std::vector<std::string> outputs =
      node.EmitAll("Loop", inputs, {OnnxBody("body", body.Finish())},
                   static_cast<int>(carry_count));
  for (size_t i = 0; i < outputs.size(); ++i) {
    node.SetOutput(static_cast<int>(i), outputs[i]);
  }
  return absl::OkStatus();
}

}  // namespace muster
