// Translations of Recurrence: to ONNX's RNN, LSTM or GRU where these compute
// the same, and to a Scan over the cell otherwise.
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/recurrence_options.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/loops.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

// ONNX has time before the batch.
AxisOrder TimeFirst() { return {1, 0, 2}; }

// An activation that ONNX's recurrent ops know.
struct OnnxActivation {
  absl::string_view name;  // Keras' name.
  absl::string_view onnx_name;
  // Of the activations that have them.
  std::optional<float> alpha;
  std::optional<float> beta;
};

const OnnxActivation* FindActivation(absl::string_view name) {
  static constexpr OnnxActivation kActivations[] = {
      {"tanh", "Tanh", {}, {}},
      {"sigmoid", "Sigmoid", {}, {}},
      {"relu", "Relu", {}, {}},
      {"hard_sigmoid", "HardSigmoid", 1.0f / 6, 0.5f},
      {"hard_sigmoid_keras2", "HardSigmoid", 0.2f, 0.5f}};
  for (const OnnxActivation& activation : kActivations) {
    if (activation.name == name) return &activation;
  }
  return nullptr;
}

// How ONNX names a cell, and orders its gates.
struct OnnxCell {
  absl::string_view op_type;
  std::vector<int> gates;  // The gate of Muster at each place.
};

OnnxCell CellOf(const RecurrenceOptions& options) {
  switch (options.cell) {
    case RecurrentCell::kSimpleRnn:
      return {"RNN", {0}};
    case RecurrentCell::kLstm:
      // Muster: input, forget, cell, output. ONNX: input, output, forget, cell.
      return {"LSTM", {0, 3, 1, 2}};
    case RecurrentCell::kGruResetAfter:
    case RecurrentCell::kGruResetBefore:
      return {"GRU", {0, 1, 2}};
  }
  return {};
}

// Returns `x` [gates units, ...] with its gates in the order of ONNX, and a
// first axis of extent 1: the directions.
Tensor WithGates(const Tensor& x, const OnnxCell& cell) {
  Shape shape = x.shape();
  shape.InsertDim(0, 1);
  Tensor y(x.dtype(), shape);
  const size_t size = x.size_bytes() / cell.gates.size();
  for (size_t i = 0; i < cell.gates.size(); ++i) {
    std::memcpy(y.mutable_raw_data() + i * size,
                x.raw_data() + cell.gates[i] * size, size);
  }
  return y;
}

// Returns [1, 2 gates units]: the biases of the inputs and of the states.
Tensor JoinedBiases(const Tensor& inputs, const Tensor& states) {
  Tensor joined(inputs.dtype(), {1, 2 * inputs.shape().dim(1)});
  std::memcpy(joined.mutable_raw_data(), inputs.raw_data(),
              inputs.size_bytes());
  std::memcpy(joined.mutable_raw_data() + inputs.size_bytes(),
              states.raw_data(), states.size_bytes());
  return joined;
}

// What the projected inputs are computed from: x kernel + bias.
struct Projection {
  std::string x;  // [time, batch, features]
  Tensor kernel;  // [features, gates units]
  Tensor bias;    // [gates units]
};

// Returns the projection that the graph computes, or one that keeps what is
// projected already.
Projection FindProjection(OnnxNode& node) {
  const TensorType& projected = node.input_type(0);
  const int64_t width = projected.shape.dim(2);
  const Tensor no_bias = Tensor::Zeros(projected.dtype, {width});
  const OnnxNode sum = node.Producer(0);
  const bool has_bias = sum.op() == "Add" && sum.Constant(1) != nullptr &&
                        sum.Constant(1)->shape() == Shape({width});
  OnnxNode product = has_bias ? sum.Producer(0) : sum;
  const bool is_product =
      product.op() == "MatMul" && product.Constant(1) != nullptr &&
      product.input_rank(0) == 3 && product.input_rank(1) == 2 &&
      !product.Attribute<bool>("transpose_a") &&
      !product.Attribute<bool>("transpose_b");
  if (is_product) {
    return {product.Input(0, TimeFirst()), *product.Constant(1),
            has_bias ? *sum.Constant(1) : no_bias};
  }
  Tensor identity = Tensor::Zeros(projected.dtype, {width, width});
  const Tensor one = Tensor::Full(projected.dtype, {}, 1);
  for (int64_t i = 0; i < width; ++i) {
    std::memcpy(
        identity.mutable_raw_data() + i * (width + 1) * one.size_bytes(),
        one.raw_data(), one.size_bytes());
  }
  return {node.Input(0, TimeFirst()), identity, no_bias};
}

bool IsZero(const OnnxNode& node, int i) {
  return node.Producer(i).op() == "ZerosLike";
}

std::vector<proto::OnnxAttribute> AttributesOf(
    const RecurrenceOptions& options) {
  std::vector<std::string> names;
  std::vector<float> alphas;
  std::vector<float> betas;
  const auto add = [&](absl::string_view name) {
    const OnnxActivation& activation = *FindActivation(name);
    names.emplace_back(activation.onnx_name);
    if (activation.alpha.has_value()) alphas.push_back(*activation.alpha);
    if (activation.beta.has_value()) betas.push_back(*activation.beta);
  };
  if (options.cell != RecurrentCell::kSimpleRnn) {
    add(options.recurrent_activation);
  }
  add(options.activation);
  if (options.cell == RecurrentCell::kLstm) add(options.activation);
  std::vector<proto::OnnxAttribute> attributes = {
      OnnxInt("hidden_size", options.units),
      OnnxText("direction", options.go_backwards ? "reverse" : "forward"),
      OnnxTexts("activations", names)};
  if (!alphas.empty()) {
    attributes.push_back(OnnxFloats("activation_alpha", alphas));
    attributes.push_back(OnnxFloats("activation_beta", betas));
  }
  if (options.cell == RecurrentCell::kGruResetAfter) {
    attributes.push_back(OnnxInt("linear_before_reset", 1));
  }
  return attributes;
}

// Adds RNN, LSTM or GRU.
void EmitCell(OnnxNode& node, const RecurrenceOptions& options) {
  const OnnxCell cell = CellOf(options);
  const Projection projection = FindProjection(node);
  const int state_count = options.state_count();
  Tensor state_bias =
      Tensor::Zeros(projection.bias.dtype(), projection.bias.shape());
  if (options.has_recurrent_bias()) {
    state_bias = *node.Constant(2 + state_count);
  }
  std::vector<std::string> inputs = {
      projection.x,
      node.Weight(WithGates(Transposed(projection.kernel, {1, 0}), cell)),
      node.Weight(WithGates(Transposed(*node.Constant(1), {1, 0}), cell)),
      node.Weight(JoinedBiases(WithGates(projection.bias, cell),
                               WithGates(state_bias, cell)))};
  bool begins_with_zeros = true;
  for (int s = 0; s < state_count; ++s) {
    begins_with_zeros = begins_with_zeros && IsZero(node, 2 + s);
  }
  if (!begins_with_zeros) {
    inputs.emplace_back();  // The lengths of the sequences: all of them.
    for (int s = 0; s < state_count; ++s) {
      inputs.push_back(
          node.Emit("Unsqueeze", {node.Input(2 + s), node.Ints({0})}));
    }
  }
  const std::vector<std::string> outputs = node.EmitAll(
      cell.op_type, inputs, AttributesOf(options), 1 + state_count);
  std::string sequence = node.Emit("Squeeze", {outputs[0], node.Ints({1})});
  if (options.go_backwards) {
    // Muster's outputs are in the order of the steps.
    sequence =
        node.Emit("Slice", {sequence, node.Ints({-1}),
                            node.Ints({-std::numeric_limits<int64_t>::max()}),
                            node.Ints({0}), node.Ints({-1})});
  }
  node.SetOutput(0, sequence, TimeFirst());
  for (int s = 0; s < state_count; ++s) {
    const std::string last =
        node.Emit("Squeeze", {outputs[1 + s], node.Ints({0})});
    if (s == 0) node.SetOutput(1, last);
    node.SetOutput(2 + s, last);
  }
}

Activation ActivationOf(absl::string_view name) {
  int found = 0;
  for (int i = 0; i <= static_cast<int>(Activation::kHardSigmoidKeras2); ++i) {
    if (ActivationName(static_cast<Activation>(i)) == name) found = i;
  }
  return static_cast<Activation>(found);
}

// One step of a cell, as nodes of a graph.
class CellStep {
 public:
  struct Inputs {
    Value kernel;
    Value recurrent_bias;  // Of kGruResetAfter.
  };

  CellStep(const RecurrenceOptions& options, const Inputs& inputs)
      : options_(options), inputs_(inputs) {}

  // Returns the next states.
  std::vector<Value> Next(Value projected, const std::vector<Value>& states) {
    const Value h = states[0];
    switch (options_.cell) {
      case RecurrentCell::kSimpleRnn:
        return {Activated(projected + MatMul(h, inputs_.kernel))};
      case RecurrentCell::kLstm:
        return Lstm(projected, h, states[1]);
      case RecurrentCell::kGruResetAfter:
        return {GruResetAfter(projected, h)};
      case RecurrentCell::kGruResetBefore:
        return {GruResetBefore(projected, h)};
    }
    return {};
  }

 private:
  Value Activated(Value x) const {
    return Activate(ActivationOf(options_.activation), x);
  }
  Value Gate(Value x) const {
    return Activate(ActivationOf(options_.recurrent_activation), x);
  }
  std::vector<Value> Parts(Value x, int64_t count) const {
    return Split(x, std::vector<int64_t>(count, options_.units), 1);
  }

  std::vector<Value> Lstm(Value projected, Value h, Value c) const {
    const std::vector<Value> x =
        Parts(projected + MatMul(h, inputs_.kernel), 4);
    const Value next = Gate(x[1]) * c + Gate(x[0]) * Activated(x[2]);
    return {Gate(x[3]) * Activated(next), next};
  }
  Value GruResetAfter(Value projected, Value h) const {
    const std::vector<Value> x = Parts(projected, 3);
    const std::vector<Value> y =
        Parts(MatMul(h, inputs_.kernel) + inputs_.recurrent_bias, 3);
    const Value z = Gate(x[0] + y[0]);
    return z * h + (1 - z) * Activated(x[2] + Gate(x[1] + y[1]) * y[2]);
  }
  Value GruResetBefore(Value projected, Value h) const {
    const std::vector<Value> x = Parts(projected, 3);
    const std::vector<Value> kernels = Parts(inputs_.kernel, 3);
    const Value z = Gate(x[0] + MatMul(h, kernels[0]));
    const Value r = Gate(x[1] + MatMul(h, kernels[1]));
    return z * h + (1 - z) * Activated(x[2] + MatMul(r * h, kernels[2]));
  }

  const RecurrenceOptions& options_;
  const Inputs inputs_;
};

TensorType RowOf(const TensorType& sequence) {
  TensorType row = sequence;
  row.shape.RemoveDim(1);
  return row;
}

// Traces the body of a Scan: (states..., output, projected, [mask], kernel,
// [recurrent bias]) -> states..., output, output as a row. The carried output
// is what masked steps repeat.
absl::StatusOr<Graph> TraceStep(const OnnxNode& node,
                                const RecurrenceOptions& options) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const GraphBuilder::NameScope scope(&builder, node.node().name);
  const int state_count = options.state_count();
  const TensorType& state_type = node.input_type(2);
  std::vector<Value> states;
  for (int s = 0; s < state_count; ++s) {
    states.push_back(builder.Parameter(absl::StrCat("state_", s), state_type));
  }
  const Value before = builder.Parameter("output", state_type);
  const Value projected =
      builder.Parameter("projected", RowOf(node.input_type(0)));
  Value mask;
  if (options.has_mask) {
    mask =
        ExpandDims(builder.Parameter(
                       "mask", RowOf(node.input_type(node.input_count() - 1))),
                   1);
  }
  CellStep::Inputs inputs;
  inputs.kernel = builder.Parameter("kernel", node.input_type(1));
  if (options.has_recurrent_bias()) {
    inputs.recurrent_bias =
        builder.Parameter("recurrent_bias", node.input_type(2 + state_count));
  }
  std::vector<Value> next = CellStep(options, inputs).Next(projected, states);
  Value output = next[0];
  if (options.has_mask) {
    output = Select(mask, output,
                    options.zero_output_for_mask ? ZerosLike(before) : before);
    for (int s = 0; s < state_count; ++s) {
      next[s] = Select(mask, next[s], states[s]);
    }
  }
  for (const Value& state : next) builder.AddResult(state);
  builder.AddResult(output);
  builder.AddResult(output);
  return std::move(builder).Build();
}

absl::Status EmitSteps(OnnxNode& node, const RecurrenceOptions& options) {
  ASSIGN_OR_RETURN(const Graph step, TraceStep(node, options));
  const int state_count = options.state_count();
  ScanParts parts{.body = &step, .reverse = options.go_backwards};
  for (int s = 0; s < state_count; ++s) {
    parts.carry.push_back(node.Input(2 + s));
  }
  const Tensor zero = Tensor::Zeros(node.input_type(2).dtype, {1});
  parts.carry.push_back(node.Emit("ConstantOfShape",
                                  {node.Emit("Shape", {node.Input(2)})},
                                  {OnnxTensorAttribute("value", zero)}));
  parts.rows.push_back(node.Input(0, TimeFirst()));
  if (options.has_mask) {
    parts.rows.push_back(node.Input(node.input_count() - 1, {1, 0}));
  }
  parts.captured.push_back(node.input(1));
  if (options.has_recurrent_bias()) {
    parts.captured.push_back(node.input(2 + state_count));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                   EmitScan(node, parts));
  for (int s = 0; s < state_count; ++s) node.SetOutput(2 + s, outputs[s]);
  node.SetOutput(1, outputs[state_count]);
  node.SetOutput(0, outputs[state_count + 1], TimeFirst());
  return absl::OkStatus();
}

}  // namespace

absl::Status RecurrenceToOnnx(OnnxNode& node) {
  ASSIGN_OR_RETURN(const RecurrenceOptions options,
                   ReadRecurrenceOptions(node.node().attributes));
  if (options.has_scale) {
    return node.Refuse(
        "recurrent dropout is part of training; call the layer with "
        "kInference");
  }
  const bool has_constants =
      node.Constant(1) != nullptr &&
      (!options.has_recurrent_bias() ||
       node.Constant(2 + options.state_count()) != nullptr);
  const bool has_activations =
      FindActivation(options.activation) != nullptr &&
      FindActivation(options.recurrent_activation) != nullptr;
  // ONNX has no masks, only lengths, which a mask need not be.
  if (options.has_mask || !has_constants || !has_activations) {
    return EmitSteps(node, options);
  }
  EmitCell(node, options);
  return absl::OkStatus();
}

}  // namespace muster
