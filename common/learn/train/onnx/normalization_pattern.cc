// Recognizes the nodes of which Muster's layer normalization consists, and
// translates them to ONNX's LayerNormalization.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"

namespace muster {
namespace {

// (x - mean(x)) * rsqrt(mean(square(x - mean(x))) + epsilon) over the axes from
// `axis` on, and then maybe * scale, and + offset.
struct Normalization {
  std::optional<OnnxNode> difference;  // x - mean(x)
  int64_t axis = 0;
  double epsilon = 0;
  std::optional<Tensor> scale;
  std::optional<Tensor> offset;

  const TensorType& type() const { return difference->input_type(0); }
  Shape normalized_shape() const {
    return Shape(type().shape.dims().subspan(axis));
  }
};

// Returns the first of the axes that a mean with extent 1 is taken over, if
// they are the last ones.
std::optional<int64_t> FirstMeanAxis(const OnnxNode& mean) {
  if (mean.op() != "Mean" || !mean.Attribute<bool>("keep_dims")) return {};
  std::vector<int64_t> axes = mean.Axes("axes", mean.input_rank(0));
  std::sort(axes.begin(), axes.end());
  const auto count = static_cast<int64_t>(axes.size());
  const int64_t first = mean.input_rank(0) - count;
  if (count == 0 || axes.front() != first) return {};
  return first;
}

// Recognizes the product of a difference and its inverse deviation.
std::optional<Normalization> FindNormalized(const OnnxNode& product) {
  if (product.op() != "Mul" || product.input_count() != 2) return {};
  const OnnxNode difference = product.Producer(0);
  const OnnxNode inverse = product.Producer(1);
  if (difference.op() != "Sub" || inverse.op() != "Rsqrt") return {};
  const OnnxNode mean = difference.Producer(1);
  const std::optional<int64_t> axis = FirstMeanAxis(mean);
  const bool is_difference =
      axis.has_value() && mean.node().inputs[0] == difference.node().inputs[0];
  const OnnxNode sum = inverse.Producer(0);
  if (!is_difference || sum.op() != "Add") return {};
  const Tensor* const epsilon = sum.Constant(1);
  const OnnxNode variance = sum.Producer(0);
  if (epsilon == nullptr || epsilon->element_count() != 1 ||
      FirstMeanAxis(variance) != axis) {
    return {};
  }
  const OnnxNode square = variance.Producer(0);
  if (square.op() != "Square" ||
      square.node().inputs[0] != product.node().inputs[0] ||
      difference.output_type(0).dtype != DType::kFloat32) {
    return {};
  }
  return Normalization{.difference = difference,
                       .axis = *axis,
                       .epsilon = epsilon->ElementAsDouble(0)};
}

// Returns constant input 1 of `node`, which has an element for each of those
// that are normalized.
std::optional<Tensor> WeightOf(const OnnxNode& node,
                               const Normalization& normalization) {
  const Tensor* const weight = node.Constant(1);
  const Shape shape = normalization.normalized_shape();
  if (weight == nullptr || !shape.IsFullyKnown()) return {};
  const int missing = weight->shape().rank() - shape.rank();
  if (missing < 0 || weight->element_count() != shape.element_count() ||
      Shape(weight->shape().dims().subspan(missing)) != shape) {
    return {};
  }
  return weight->Reshaped(shape);
}

std::optional<Normalization> FindScaled(const OnnxNode& product) {
  if (product.op() != "Mul" || product.input_count() != 2) return {};
  std::optional<Normalization> found = FindNormalized(product.Producer(0));
  if (!found.has_value()) return {};
  found->scale = WeightOf(product, *found);
  if (!found->scale.has_value()) return {};
  return found;
}

std::optional<Normalization> FindWithOffset(const OnnxNode& sum) {
  std::optional<Normalization> found = FindScaled(sum.Producer(0));
  if (!found.has_value()) return {};
  found->offset = WeightOf(sum, *found);
  if (!found->offset.has_value()) return {};
  return found;
}

void Emit(OnnxNode& node, Normalization normalization) {
  std::vector<std::string> inputs = {normalization.difference->Input(0),
                                     node.Weight(*normalization.scale)};
  if (normalization.offset.has_value()) {
    inputs.push_back(node.Weight(*normalization.offset));
  }
  node.SetOutput(0, node.Emit("LayerNormalization", inputs,
                              {OnnxInt("axis", normalization.axis),
                               OnnxFloat("epsilon", normalization.epsilon)}));
}

std::string EmitOp(OnnxNode& node, absl::Span<const std::string> operands) {
  return node.Emit(node.op(), operands);
}

}  // namespace

absl::Status AddToOnnx(OnnxNode& node) {
  if (auto found = FindWithOffset(node); found.has_value()) {
    Emit(node, *std::move(found));
  } else {
    TranslateElementwise(node, EmitOp);
  }
  return absl::OkStatus();
}

absl::Status MulToOnnx(OnnxNode& node) {
  if (auto found = FindScaled(node); found.has_value()) {
    Emit(node, *std::move(found));
  } else {
    TranslateElementwise(node, EmitOp);
  }
  return absl::OkStatus();
}

}  // namespace muster
