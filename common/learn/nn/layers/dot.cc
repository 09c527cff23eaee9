#include "common/learn/nn/layers/dot.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Returns `axis` counted from the first one; 0, which is no valid axis here, if
// it is outside of the shape.
int64_t AxisOf(int64_t axis, const Shape& shape) {
  const int64_t rank = shape.rank();
  const int64_t counted = axis < 0 ? axis + rank : axis;
  return counted > 0 && counted < rank ? counted : 0;
}

// The extents but those of the batch and of `axis`.
std::vector<int64_t> FreeExtents(const Shape& shape, int64_t axis) {
  std::vector<int64_t> extents;
  for (int64_t i = 1; i < shape.rank(); ++i) {
    if (i != axis) extents.push_back(shape.dim(i));
  }
  return extents;
}

// Returns `x` as [batch, free, k] with the axis last, or as [batch, k, free].
Value AsMatrices(Value x, int64_t axis, bool is_last) {
  const Shape shape = x.shape();
  std::vector<int64_t> permutation = {0};
  if (!is_last) permutation.push_back(axis);
  for (int64_t i = 1; i < shape.rank(); ++i) {
    if (i != axis) permutation.push_back(i);
  }
  if (is_last) permutation.push_back(axis);
  int64_t free = 1;
  for (const int64_t extent : FreeExtents(shape, axis)) free *= extent;
  const int64_t summed = shape.dim(axis);
  return Reshape(Transpose(x, permutation),
                 is_last ? std::vector<int64_t>{-1, free, summed}
                         : std::vector<int64_t>{-1, summed, free});
}

Value Normalized(Value x, int64_t axis) {
  // Keras' epsilon.
  constexpr double kEpsilon = 1e-7;
  const Value squared_norm = Sum(Square(x), {axis}, {.keep_dims = true});
  return x * Minimum(Rsqrt(squared_norm), 1 / kEpsilon);
}

}  // namespace

DotLayer::DotLayer(const std::vector<int64_t>& axes, const DotOptions& options)
    : Layer(options.name), axes_(axes), normalize_(options.normalize) {
  if (axes_.size() == 1) axes_.push_back(axes_.front());
}

void DotLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(Described("axes", "One axis for both inputs, or one for each."),
                axes_);
  if (axes_.size() == 1) axes_.push_back(axes_.front());
  if (axes_.size() != 2) {
    visitor.Refuse("axes",
                   absl::StrCat("must be one number, or one for each input, "
                                "got ",
                                axes_.size(), " numbers"));
  }
  visitor.Visit("normalize", normalize_);
}

std::vector<Value> DotLayer::CallMany(absl::Span<const Value> inputs,
                                      const CallContext&) {
  std::array<int64_t, 2> axes = {0, 0};
  bool is_known = axes_.size() == 2;
  for (int i = 0; is_known && i < 2; ++i) {
    const Shape& shape = inputs[i].shape();
    axes[i] = AxisOf(axes_[i], shape);
    for (int64_t j = 1; j < shape.rank(); ++j) {
      is_known = is_known && shape.dim(j) != Shape::kUnknown;
    }
  }
  const Shape& a = inputs[0].shape();
  const Shape& b = inputs[1].shape();
  if (!is_known || axes[0] == 0 || axes[1] == 0 ||
      a.dim(axes[0]) != b.dim(axes[1])) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Dot ", name(), ": the axes are {", absl::StrJoin(axes_, ", "),
        "}; expected one axis of each input, not the batch, of the same known "
        "extent, and other known extents; the inputs are ",
        inputs[0].type().ToString(), " and ", inputs[1].type().ToString())));
    return {Value()};
  }
  Value left = inputs[0];
  Value right = inputs[1];
  if (normalize_) {
    left = Normalized(left, axes[0]);
    right = Normalized(right, axes[1]);
  }
  std::vector<int64_t> extents = {-1};
  for (const int64_t extent : FreeExtents(a, axes[0])) {
    extents.push_back(extent);
  }
  for (const int64_t extent : FreeExtents(b, axes[1])) {
    extents.push_back(extent);
  }
  if (extents.size() == 1) extents.push_back(1);
  return {Reshape(MatMul(AsMatrices(left, axes[0], /*is_last=*/true),
                         AsMatrices(right, axes[1], /*is_last=*/false)),
                  extents)};
}

LayerPtr Dot(const std::vector<int64_t>& axes, const DotOptions& options) {
  return std::make_shared<DotLayer>(axes, options);
}

}  // namespace muster
