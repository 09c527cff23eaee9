#include "common/learn/nn/image/color.h"

#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/image/augmentation.h"

namespace muster::internal {
namespace {

constexpr ValueRange kUnit = {.lower = 0, .upper = 1};
constexpr ValueRange kByte = {.lower = 0, .upper = 255};

// A constant of the dtype of `like`.
Value Numbers(Value like, const Shape& shape,
              const std::vector<float>& numbers) {
  const Value constant = like.builder()->Constant(
      Tensor::FromSpan<float>(shape, absl::MakeConstSpan(numbers)));
  return Cast(constant, like.dtype());
}

// 0, 1, ... count - 1 along one axis of images.
Value Positions(Value like, const Shape& shape, int64_t count) {
  std::vector<float> positions(count);
  std::iota(positions.begin(), positions.end(), 0.0f);
  return Numbers(like, shape, positions);
}

// Each [batch, height, width, 1].
struct Hsv {
  Value hue;
  Value saturation;
  Value value;
};

Hsv ToHsv(Value images) {
  const std::vector<Value> rgb = Split(images, {1, 1, 1}, 3);
  const Value& red = rgb[0];
  const Value& green = rgb[1];
  const Value& blue = rgb[2];
  const Value value = Max(images, {3}, {.keep_dims = true});
  const Value range = value - Min(images, {3}, {.keep_dims = true});
  const Value zero = ZerosLike(value);
  const Value one = OnesLike(value);
  // Divisors where there is nothing to divide would make gradients NaN.
  const Value saturation =
      Select(value > 0, range / Select(value > 0, value, one), zero);
  const Value is_gray = LogicalNot(range > 0);
  const Value norm = 1.0 / (Select(is_gray, one, range) * 6.0);
  Value hue =
      Select(Equal(red, value), norm * (green - blue),
             Select(Equal(green, value), norm * (blue - red) + 2.0 / 6.0,
                    norm * (red - green) + 4.0 / 6.0));
  hue = Select(is_gray, zero, hue);
  hue = Select(hue < 0, hue + 1.0, hue);
  return {.hue = hue, .saturation = saturation, .value = value};
}

Value ToRgb(const Hsv& hsv) {
  const Value sixths = hsv.hue * 6.0;
  const std::vector<Value> colors = {
      Clip(Abs(sixths - 3.0) - 1.0, kUnit),
      Clip(2.0 - Abs(sixths - 2.0), kUnit),
      Clip(2.0 - Abs(sixths - 4.0), kUnit),
  };
  std::vector<Value> rgb;
  for (const Value& color : colors) {
    rgb.push_back((1.0 - hsv.saturation + hsv.saturation * color) * hsv.value);
  }
  return Concat(rgb, 3);
}

Value Convolve(Value images, Value kernel) {
  const int64_t channels = images.shape().dim(3);
  const Shape& shape = kernel.shape();
  const Value repeated =
      BroadcastTo(Reshape(kernel, {shape.dim(0), shape.dim(1), 1, 1}),
                  {shape.dim(0), shape.dim(1), channels, 1});
  return DepthwiseConv2D(images, repeated, {.padding = Padding2D::Same()});
}

// The weights of a Gaussian over `size` pixels; they sum to 1.
Value Gaussian(int64_t size, Value sigma) {
  const Value offsets =
      Positions(sigma, {size}, size) - static_cast<double>(size - 1) / 2;
  const Value weights = Exp(Square(offsets / sigma) * -0.5);
  return weights / Sum(weights);
}

}  // namespace

Value Rescale(Value images, const ValueRange& from, const ValueRange& to) {
  if (from.lower == to.lower && from.upper == to.upper) return images;
  const Value unit = (images - from.lower) / (from.upper - from.lower);
  return unit * (to.upper - to.lower) + to.lower;
}

Value Clip(Value images, const ValueRange& range) {
  return Minimum(Maximum(images, range.lower), range.upper);
}

Value AdjustBrightness(Value images, Value delta, const ValueRange& range) {
  return Clip(images + delta, range);
}

Value AdjustContrast(Value images, Value factor, const ValueRange& range) {
  const Value mean = Mean(images, {1, 2}, {.keep_dims = true});
  return Clip((images - mean) * factor + mean, range);
}

Value Grayscale(Value images) {
  if (images.shape().dim(3) == 1) return images;
  const Value weights = Numbers(images, {3}, {0.2989f, 0.5870f, 0.1140f});
  return Sum(images * weights, {3}, {.keep_dims = true});
}

Value DegenerateColor(Value images, Value factor, const ValueRange& range) {
  return Clip(images + factor * (Grayscale(images) - images), range);
}

Value Posterize(Value images, Value bits, const ValueRange& range) {
  const Value steps =
      Gather(Numbers(images, {9}, {256, 128, 64, 32, 16, 8, 4, 2, 1}),
             Cast(bits, DType::kInt32));
  const Value bytes = Floor(Clip(Rescale(images, range, kByte), kByte));
  return Rescale(Floor(bytes / steps) * steps, kByte, range);
}

Value Solarize(Value images, Value addition, Value threshold,
               const ValueRange& range) {
  const Value bytes = Clip(Rescale(images, range, kByte) + addition, kByte);
  return Rescale(Select(bytes < threshold, bytes, 255.0 - bytes), kByte, range);
}

Value AdjustSaturation(Value images, Value factor, const ValueRange& range) {
  Hsv hsv = ToHsv(images);
  hsv.saturation = Clip(hsv.saturation * factor, range);
  return ToRgb(hsv);
}

Value AdjustHue(Value images, Value delta, const ValueRange& range) {
  Hsv hsv = ToHsv(Rescale(images, range, kUnit));
  hsv.hue = hsv.hue + delta;
  hsv.hue = Select(hsv.hue > 1.0, hsv.hue - 1.0, hsv.hue);
  hsv.hue = Select(hsv.hue < 0.0, hsv.hue + 1.0, hsv.hue);
  return Rescale(Clip(ToRgb(hsv), kUnit), kUnit, range);
}

Value StretchContrast(Value images, const ValueRange& range) {
  const Value bytes = Rescale(images, range, kByte);
  const Value low = Min(bytes, {1, 2}, {.keep_dims = true});
  const Value high = Max(bytes, {1, 2}, {.keep_dims = true});
  const Value is_flat = Equal(low, high);
  const Value scale = 255.0 / Select(is_flat, OnesLike(low), high - low);
  const Value stretched =
      Rescale(Clip(bytes * scale - low * scale, kByte), kByte, range);
  return Select(LogicalOr(is_flat, IsNan(stretched)), images, stretched);
}

Value Equalize(Value images, int64_t bins, const ValueRange& range) {
  const int64_t channels = images.shape().dim(3);
  const double scale = 255 / (range.upper - range.lower);
  const double last = static_cast<double>(bins - 1);
  const Value bytes = images * scale - range.lower * scale;
  // Bins of all channels, one channel after the other.
  const auto bin_of = [&](Value position) {
    const Value bin =
        Cast(Minimum(Maximum(position, 0.0), last), DType::kInt32);
    const Value first = Positions(images, {channels}, channels);
    return Reshape(bin + Cast(first * static_cast<double>(bins), DType::kInt32),
                   {-1});
  };
  const Value counted = bin_of(bytes * last / 255.0);
  const Value histogram =
      Reshape(SegmentSum(OnesLike(counted), counted, channels * bins),
              {channels, bins});
  const Value total = Cast(CumSum(histogram, {.axis = 1}), DType::kFloat64);
  // Sums only grow: the least one above 0 is the first.
  const double beyond = std::numeric_limits<int32_t>::max();
  const ReduceOptions keep = {.keep_dims = true};
  const Value first_total =
      Min(Select(total > 0.0, total, ScalarLike(total, beyond)), {1}, keep);
  const Value rest = Maximum(Max(total, {1}, keep) - first_total, 1.0);
  const Value table =
      Minimum(Maximum(Round((total - first_total) * 255.0 / rest), 0.0), 255.0);
  const Value equalized =
      Reshape(Gather(Reshape(table, {-1}), bin_of(bytes / 255.0 * last)),
              {-1, images.shape().dim(1), images.shape().dim(2), channels});
  const Value is_flat = Reshape(
      Sum(Cast(histogram > 0.0, DType::kInt32), {1}) <= 1.0, {channels});
  return Select(is_flat, bytes, Cast(equalized, images.dtype())) *
             ((range.upper - range.lower) / 255) +
         range.lower;
}

Value Sharpen(Value images, Value factor, const ValueRange& range) {
  constexpr float kAround = 1.0f / 13;
  std::vector<float> kernel(9, kAround);
  kernel[4] = 5.0f / 13;
  const Value smooth = Convolve(images, Numbers(images, {3, 3}, kernel));
  return Clip(images + (1.0 - factor) * (smooth - images), range);
}

Value GaussianBlur(Value images, const std::array<int64_t, 2>& kernel_size,
                   Value sigma) {
  const std::vector<Value> sigmas = Unstack(sigma, 2, 0);
  const Value columns =
      Reshape(Gaussian(kernel_size[1], sigmas[1]), {kernel_size[1], 1});
  const Value rows =
      Reshape(Gaussian(kernel_size[0], sigmas[0]), {1, kernel_size[0]});
  // Keras reads the product in this shape, too, without transposing it.
  const Value kernel =
      Reshape(columns * rows, {kernel_size[0], kernel_size[1]});
  return Convolve(images, Cast(kernel, images.dtype()));
}

Value Erase(Value images, const Box& box, Value fill) {
  const int64_t height = images.shape().dim(1);
  const int64_t width = images.shape().dim(2);
  const Value rows = Positions(box.top, {1, height, 1, 1}, height);
  const Value columns = Positions(box.left, {1, 1, width, 1}, width);
  const Value is_in_rows = LogicalAnd(rows >= box.top, rows < box.bottom);
  const Value is_in_columns =
      LogicalAnd(columns >= box.left, columns < box.right);
  return Select(LogicalAnd(is_in_rows, is_in_columns), fill, images);
}

}  // namespace muster::internal
