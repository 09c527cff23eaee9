#include "common/learn/nn/up_sampling.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/resampling.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// True if `x` has the rank and known extents; reports if not.
bool CanRepeat(const Layer& layer, Value x, int rank, int64_t least_count,
               absl::string_view expected) {
  const Shape& shape = x.shape();
  if (shape.rank() == rank && least_count >= 1 &&
      Shape(shape.dims().subspan(1)).IsFullyKnown()) {
    return true;
  }
  x.builder()->ReportError(absl::InvalidArgumentError(
      absl::StrCat(layer.kind(), " ", layer.name(),
                   ": expected at least 1 repetition and "
                   "an input ",
                   expected,
                   " of which all extents except the batch are "
                   "known, got ",
                   least_count, " and ", x.type().ToString())));
  return false;
}

// Repeats each element along `axis`, which is not the first, `count` times.
Value Repeat(Value x, int64_t count, int64_t axis) {
  if (count == 1) return x;
  std::vector<int64_t> shape(x.shape().dims().begin(), x.shape().dims().end());
  shape[0] = -1;
  shape[axis] *= count;
  const std::vector<Value> copies(count, ExpandDims(x, axis + 1));
  return Reshape(Concat(copies, axis + 1), shape);
}

}  // namespace

void RepeatVectorLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("n", n_);
}

Value RepeatVectorLayer::Call(Value x, const CallContext&) {
  if (!CanRepeat(*this, x, 2, n_, "[batch, features]")) return Value();
  return Repeat(ExpandDims(x, 1), n_, 1);
}

void UpSampling1DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("size", size_);
}

Value UpSampling1DLayer::Call(Value x, const CallContext&) {
  if (!CanRepeat(*this, x, 3, size_, "[batch, time, channels]")) return Value();
  return Repeat(x, size_, 1);
}

void UpSampling2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitSize(visitor, "size", size_);
  VisitInterpolation(visitor, interpolation_);
}

Value UpSampling2DLayer::Call(Value x, const CallContext&) {
  const int64_t least = std::min(size_.height, size_.width);
  if (!CanRepeat(*this, x, 4, least, "[batch, height, width, channels]")) {
    return Value();
  }
  if (interpolation_ == Interpolation::kNearest) {
    return Repeat(Repeat(x, size_.height, 1), size_.width, 2);
  }
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  return ResizeImage(x, size_.height * x.shape().dim(1),
                     size_.width * x.shape().dim(2), interpolation_);
}

void UpSampling3DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitSize(visitor, "size", size_);
}

Value UpSampling3DLayer::Call(Value x, const CallContext&) {
  const int64_t least = std::min({size_.depth, size_.height, size_.width});
  if (!CanRepeat(*this, x, 5, least,
                 "[batch, depth, height, width, channels]")) {
    return Value();
  }
  x = Repeat(x, size_.depth, 1);
  return Repeat(Repeat(x, size_.height, 2), size_.width, 3);
}

LayerPtr RepeatVector(int64_t n, const UpSamplingOptions& options) {
  return std::make_shared<RepeatVectorLayer>(n, options);
}

LayerPtr UpSampling1D(int64_t size, const UpSamplingOptions& options) {
  return std::make_shared<UpSampling1DLayer>(size, options);
}

LayerPtr UpSampling2D(Size2D size, const UpSampling2DOptions& options) {
  return std::make_shared<UpSampling2DLayer>(size, options);
}

LayerPtr UpSampling3D(Size3D size, const UpSamplingOptions& options) {
  return std::make_shared<UpSampling3DLayer>(size, options);
}

}  // namespace muster
