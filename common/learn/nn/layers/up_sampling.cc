#include "common/learn/nn/layers/up_sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/image_ops.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
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

double Sinc(double x) {
  if (x == 0) return 1;
  const double angle = std::numbers::pi * x;
  return std::sin(angle) / angle;
}

double Lanczos(double x, double radius) {
  return std::abs(x) < radius ? Sinc(x) * Sinc(x / radius) : 0;
}

double Keys(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

using Kernel = absl::FunctionRef<double(double distance)>;

// The share of each of `extent` elements in each of size * extent elements:
// float32 [size * extent, extent].
Tensor InterpolationWeights(int64_t extent, int64_t size, Kernel kernel) {
  Tensor weights(DType::kFloat32, Shape({size * extent, extent}));
  float* row = weights.mutable_flat<float>().data();
  for (int64_t j = 0; j < size * extent; ++j, row += extent) {
    const double position =
        (static_cast<double>(j) + 0.5) / static_cast<double>(size) - 0.5;
    double sum = 0;
    for (int64_t i = 0; i < extent; ++i) {
      sum += kernel(position - static_cast<double>(i));
    }
    for (int64_t i = 0; i < extent; ++i) {
      row[i] =
          static_cast<float>(kernel(position - static_cast<double>(i)) / sum);
    }
  }
  return weights;
}

Value InterpolateImage(Value x, Size2D size, Kernel kernel) {
  const auto weights = [&](int axis, int64_t times) {
    return Cast(x.builder()->Constant(
                    InterpolationWeights(x.shape().dim(axis), times, kernel)),
                x.dtype());
  };
  const Value rows = Einsum("ji,bick->bjck", weights(1, size.height), x);
  return Einsum("jc,brck->brjk", weights(2, size.width), rows);
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
  static constexpr absl::string_view kNames[] = {
      "bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"};
  visitor.Visit("interpolation", interpolation_, kNames);
}

Value UpSampling2DLayer::Call(Value x, const CallContext&) {
  const int64_t least = std::min(size_.height, size_.width);
  if (!CanRepeat(*this, x, 4, least, "[batch, height, width, channels]")) {
    return Value();
  }
  if (interpolation_ == UpSamplingInterpolation::kNearest) {
    return Repeat(Repeat(x, size_.height, 1), size_.width, 2);
  }
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  switch (interpolation_) {
    case UpSamplingInterpolation::kBicubic:
      return InterpolateImage(x, size_, Keys);
    case UpSamplingInterpolation::kLanczos3:
      return InterpolateImage(x, size_, [](double t) { return Lanczos(t, 3); });
    case UpSamplingInterpolation::kLanczos5:
      return InterpolateImage(x, size_, [](double t) { return Lanczos(t, 5); });
    case UpSamplingInterpolation::kBilinear:
    case UpSamplingInterpolation::kNearest:
      break;
  }
  return ResizeImage(x, size_.height * x.shape().dim(1),
                     size_.width * x.shape().dim(2), Interpolation::kBilinear);
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
