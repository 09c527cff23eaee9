// Translations of ops that compute each element by itself.
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"

namespace muster {

using Operands = absl::Span<const std::string>;

void TranslateElementwise(OnnxNode& node,
                          OnnxTranslation::Elementwise elementwise) {
  const AxisOrder order = node.OperandOrder();
  std::vector<std::string> operands;
  for (int i = 0; i < node.input_count(); ++i) {
    operands.push_back(node.Operand(i, order));
  }
  node.SetOutput(0, elementwise(node, operands), order);
}

std::string FloorDivToOnnx(OnnxNode& node, Operands x) {
  if (IsFloating(node.output_type(0).dtype)) {
    return node.Emit("Floor", {node.Emit("Div", {x[0], x[1]})});
  }
  // Div rounds integers towards zero.
  const std::string rest = node.Emit("Mod", {x[0], x[1]});
  return node.Emit("Div", {node.Emit("Sub", {x[0], rest}), x[1]});
}

std::string ModToOnnx(OnnxNode& node, Operands x) {
  if (!IsFloating(node.output_type(0).dtype)) {
    return node.Emit("Mod", {x[0], x[1]});
  }
  // ONNX's Mod of floats has the sign of the dividend.
  const std::string quotient =
      node.Emit("Floor", {node.Emit("Div", {x[0], x[1]})});
  return node.Emit("Sub", {x[0], node.Emit("Mul", {quotient, x[1]})});
}

std::string SquaredDifferenceToOnnx(OnnxNode& node, Operands x) {
  const std::string difference = node.Emit("Sub", {x[0], x[1]});
  return node.Emit("Mul", {difference, difference});
}

std::string Relu6ToOnnx(OnnxNode& node, Operands x) {
  const DType dtype = node.output_type(0).dtype;
  return node.Emit("Clip",
                   {x[0], node.Number(0, dtype), node.Number(6, dtype)});
}

std::string LeakyReluToOnnx(OnnxNode& node, Operands x) {
  return node.Emit("LeakyRelu", {x[0]},
                   {OnnxFloat("alpha", node.Attribute<double>("alpha"))});
}

std::string EluToOnnx(OnnxNode& node, Operands x) {
  return node.Emit("Elu", {x[0]},
                   {OnnxFloat("alpha", node.Attribute<double>("alpha"))});
}

std::string GeluToOnnx(OnnxNode& node, Operands x) {
  const DType dtype = node.output_type(0).dtype;
  const auto scaled = [&](const std::string& y, double factor) {
    return node.Emit("Mul", {y, node.Number(factor, dtype)});
  };
  std::string inner;
  if (node.Attribute<bool>("approximate")) {
    const std::string square = node.Emit("Mul", {x[0], x[0]});
    const std::string cubic = node.Emit("Mul", {square, x[0]});
    const std::string sum = node.Emit("Add", {x[0], scaled(cubic, 0.044715)});
    inner = node.Emit("Tanh", {scaled(sum, std::sqrt(2 / M_PI))});
  } else {
    inner = node.Emit("Erf", {scaled(x[0], std::sqrt(0.5))});
  }
  const std::string share = node.Emit("Add", {inner, node.Number(1, dtype)});
  return node.Emit("Mul", {scaled(x[0], 0.5), share});
}

std::string SquareToOnnx(OnnxNode& node, Operands x) {
  return node.Emit("Mul", {x[0], x[0]});
}

std::string RsqrtToOnnx(OnnxNode& node, Operands x) {
  return node.Emit("Reciprocal", {node.Emit("Sqrt", {x[0]})});
}

std::string Expm1ToOnnx(OnnxNode& node, Operands x) {
  return node.Emit("Sub", {node.Emit("Exp", {x[0]}),
                           node.Number(1, node.output_type(0).dtype)});
}

std::string Log1pToOnnx(OnnxNode& node, Operands x) {
  return node.Emit(
      "Log",
      {node.Emit("Add", {x[0], node.Number(1, node.output_type(0).dtype)})});
}

std::string IsFiniteToOnnx(OnnxNode& node, Operands x) {
  // x - x is NaN for infinities and NaN, and 0 for other numbers.
  const std::string difference = node.Emit("Sub", {x[0], x[0]});
  return node.Emit("Not", {node.Emit("IsNaN", {difference})});
}

std::string NotEqualToOnnx(OnnxNode& node, Operands x) {
  return node.Emit("Not", {node.Emit("Equal", {x[0], x[1]})});
}

absl::Status CastToOnnx(OnnxNode& node) {
  const DType dtype = node.output_type(0).dtype;
  if (node.input_type(0).dtype == dtype) return ForwardToOnnx(node);
  const AxisOrder order = node.OperandOrder();
  node.SetOutput(0,
                 node.Emit("Cast", {node.Operand(0, order)},
                           {OnnxInt("to", OnnxDTypeOf(dtype))}),
                 order);
  return absl::OkStatus();
}

absl::Status ForwardToOnnx(OnnxNode& node) {
  node.ForwardInput(0);
  return absl::OkStatus();
}

absl::Status FilledToOnnx(OnnxNode& node) {
  const TensorType& type = node.output_type(0);
  const double value = node.op() == "OnesLike" ? 1 : 0;
  const AxisOrder order = node.ExistingOrder(0);
  const std::string shape = node.Emit("Shape", {node.Input(0, order)});
  node.SetOutput(0,
                 node.Emit("ConstantOfShape", {shape},
                           {OnnxTensorAttribute(
                               "value", Tensor::Full(type.dtype, {1}, value))}),
                 order);
  return absl::OkStatus();
}

}  // namespace muster
