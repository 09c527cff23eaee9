#include "common/learn/nn/image/elastic_transform.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/image/resampling.h"
#include "common/learn/nn/layer.h"

namespace muster {

void RandomElasticTransformLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(
      visitor,
      Described("factor", "The probability; one number is [0, number]."),
      factor_, false);
  VisitFactor(visitor, "scale", options_.scale, false);
  VisitResampling(visitor, options_);
  VisitValueRange(visitor, options_.value_range);
  VisitSeed(visitor);
}

std::string RandomElasticTransformLayer::Mistake() const {
  const auto named = [](const char* name, const std::string& what) {
    return what.empty() ? what : absl::StrCat(name, " ", what);
  };
  const std::string factor = named("factor", OutOfBounds(factor_, 0, 1));
  if (!factor.empty()) return factor;
  return named("scale", OutOfBounds(options_.scale, 0, 1));
}

Value RandomElasticTransformLayer::Augment(Value x, ImageDraws& draws) {
  if (factor_.upper == 0 || options_.scale.upper == 0) return x;
  const Value probability = draws.Uniform(factor_.lower, factor_.upper);
  const Value is_changed = draws.Uniform(0, 1) < probability;
  const Value scale =
      draws.UniformOfBatch(1, options_.scale.lower, options_.scale.upper);
  const int64_t height = x.shape().dim(1);
  const int64_t width = x.shape().dim(2);
  // Of the first channel.
  const Value noise =
      Reshape(Slice(draws.NormalPixels(), {0, 0, 0, 0}, {-1, height, width, 1}),
              {-1, height, width});
  const Value changed = internal::ElasticTransform(
      x, noise, {.scale = scale, .scale_max = options_.scale.upper},
      ResamplingOf(options_));
  return internal::Clip(Select(is_changed, changed, x), options_.value_range);
}

LayerPtr RandomElasticTransform(const UnitFactor& factor,
                                const RandomElasticTransformOptions& options) {
  return std::make_shared<RandomElasticTransformLayer>(factor, options);
}

namespace internal {
namespace {

// `first`, first + 1, ... as a constant of the dtype of `like`.
Value CountingFrom(Value like, int64_t first, const Shape& shape) {
  std::vector<float> numbers(shape.element_count());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(first + static_cast<int64_t>(i));
  }
  const Value constant = like.builder()->Constant(
      Tensor::FromSpan<float>(shape, absl::MakeConstSpan(numbers)));
  return Cast(constant, like.dtype());
}

// Blurs [batch, height, width, 1]. The kernel has the greatest size there may
// be, and 0 beyond the size that belongs to `sigma`, [1].
Value BlurBySigma(Value x, Value sigma, int64_t radius_max) {
  if (radius_max == 0) return x;
  const int64_t size = 2 * radius_max + 1;
  const Value offsets = CountingFrom(sigma, -radius_max, {size});
  const Value weights = Exp(Square(offsets / sigma) * -0.5);
  const Value inside =
      Select(Abs(offsets) <= Floor(sigma) * 3.0, weights, ZerosLike(weights));
  const Value kernel = inside / Sum(inside);
  const DepthwiseConv2DOptions same = {.padding = Padding2D::Same()};
  x = DepthwiseConv2D(x, Reshape(kernel, {size, 1, 1, 1}), same);
  return DepthwiseConv2D(x, Reshape(kernel, {1, size, 1, 1}), same);
}

// A position along one axis whose whole numbers are pixels.
struct Pixel {
  Value index;  // In the image.
  Value is_inside;
};

Pixel PixelAt(Value position, int64_t extent, FillMode mode) {
  const auto count = static_cast<double>(extent);
  const Value is_inside =
      LogicalAnd(position >= 0.0, position < ScalarLike(position, count));
  switch (mode) {
    case FillMode::kReflect: {
      const Value period = ScalarLike(position, 2 * count);
      const Value folded = Mod(Abs(position), period);
      return {Select(folded < count, folded, period - folded - 1.0), is_inside};
    }
    case FillMode::kWrap:
      return {Mod(position, ScalarLike(position, count)), is_inside};
    default:
      return {Minimum(Maximum(position, 0.0), count - 1), is_inside};
  }
}

// Samples images at positions [batch, height, width] that are whole numbers.
Value PixelsAt(Value images, Value y, Value x,
               const ImageTransformOptions& options) {
  const int64_t height = images.shape().dim(1);
  const int64_t width = images.shape().dim(2);
  const int64_t channels = images.shape().dim(3);
  const Pixel row = PixelAt(y, height, options.fill_mode);
  const Pixel column = PixelAt(x, width, options.fill_mode);
  const Value in_image =
      Cast(row.index, DType::kInt64) * static_cast<double>(width) +
      Cast(column.index, DType::kInt64);
  const Value image =
      CumSum(Cast(OnesLike(Slice(y, {0, 0, 0}, {-1, 1, 1})), DType::kInt64),
             {.exclusive = true});
  const Value index = image * static_cast<double>(height * width) + in_image;
  const Value pixels = Gather(Reshape(images, {-1, channels}), index);
  if (options.fill_mode != FillMode::kConstant) return pixels;
  const Value is_inside =
      ExpandDims(LogicalAnd(row.is_inside, column.is_inside), 3);
  return Select(is_inside, pixels, ScalarLike(pixels, options.fill_value));
}

}  // namespace

Value ElasticTransform(Value images, Value noise,
                       const ElasticStrength& strength,
                       const ImageTransformOptions& options) {
  const int64_t height = images.shape().dim(1);
  const int64_t width = images.shape().dim(2);
  const double sigma_unit = 0.05 * static_cast<double>(std::min(height, width));
  const Value sigma = strength.scale * sigma_unit;
  const Value alpha =
      strength.scale * (0.1 * static_cast<double>(std::max(height, width)));
  // Float32 may round sigma up to the next whole number.
  const auto radius_max = static_cast<int64_t>(
      3 * std::floor(sigma_unit * strength.scale_max * (1 + 1e-6)));
  const Value blurred = BlurBySigma(ExpandDims(noise * sigma, 3),
                                    Maximum(sigma, 1e-6), radius_max);
  const Value shift = Reshape(blurred, {-1, height, width}) * alpha;
  const Value y = shift + CountingFrom(shift, 0, {height, 1});
  const Value x = shift + CountingFrom(shift, 0, {width});
  if (options.interpolation == Interpolation::kNearest) {
    return PixelsAt(images, Round(y), Round(x), options);
  }
  const Value top = Floor(y);
  const Value left = Floor(x);
  const Value down = ExpandDims(y - top, 3);
  const Value right = ExpandDims(x - left, 3);
  const auto row = [&](Value at) {
    return PixelsAt(images, at, left, options) * (1.0 - right) +
           PixelsAt(images, at, left + 1.0, options) * right;
  };
  return row(top) * (1.0 - down) + row(top + 1.0) * down;
}

}  // namespace internal

}  // namespace muster
