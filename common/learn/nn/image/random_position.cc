#include "common/learn/nn/image/random_position.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/image/resampling.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// "NAME must be in [lower, upper]..."; empty if all of the factor is in bounds.
template <typename Factor>
std::string Outside(const char* name, const Factor& factor, double lower) {
  if (factor.lower >= lower && factor.lower <= factor.upper &&
      factor.upper <= 1) {
    return "";
  }
  return absl::StrCat(name, " must be in [", lower, ", 1], got [", factor.lower,
                      ", ", factor.upper, "]");
}

std::string FirstOf(std::string first, std::string second) {
  return first.empty() ? std::move(second) : std::move(first);
}

// The positions [start, start + count), where `start` is a float32 scalar.
Value PositionsFrom(Value start, int64_t count) {
  std::vector<int64_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0);
  const Value offsets = start.builder()->Constant(
      Tensor::FromSpan<int64_t>({count}, absl::MakeConstSpan(positions)));
  return Cast(Floor(start), DType::kInt64) + offsets;
}

}  // namespace

void RandomTranslationLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor, "height_factor", height_factor_);
  VisitFactor(visitor, "width_factor", width_factor_);
  VisitResampling(visitor, options_);
  VisitSeed(visitor);
}

std::string RandomTranslationLayer::Mistake() const {
  return FirstOf(Outside("height_factor", height_factor_, -1),
                 Outside("width_factor", width_factor_, -1));
}

Value RandomTranslationLayer::Augment(Value x, ImageDraws& draws) {
  const auto drawn = [&](const RandomFactor& factor, int64_t extent) {
    return AsTransformElement(draws.Uniform(factor.lower, factor.upper)) *
           static_cast<double>(extent);
  };
  const Value down = drawn(height_factor_, x.shape().dim(1));
  const Value right = drawn(width_factor_, x.shape().dim(2));
  const Value zero = ZerosLike(down);
  const Value one = OnesLike(down);
  return ImageTransform(
      x, Concat({one, zero, -right, zero, one, -down, zero, zero}, 1),
      ResamplingOf(options_));
}

LayerPtr RandomTranslation(const RandomFactor& height_factor,
                           const RandomFactor& width_factor,
                           const RandomResamplingOptions& options) {
  return std::make_shared<RandomTranslationLayer>(height_factor, width_factor,
                                                  options);
}

void RandomShearLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor, "x_factor", x_factor_, false);
  VisitFactor(visitor, "y_factor", y_factor_, false);
  VisitResampling(visitor, options_);
  VisitSeed(visitor);
}

std::string RandomShearLayer::Mistake() const {
  return FirstOf(Outside("x_factor", x_factor_, -1),
                 Outside("y_factor", y_factor_, -1));
}

Value RandomShearLayer::Augment(Value x, ImageDraws& draws) {
  const Value sign = AsTransformElement(draws.Sign());
  const auto drawn = [&](const RandomFactor& factor) {
    return AsTransformElement(draws.Uniform(factor.lower, factor.upper)) * sign;
  };
  const Value across = drawn(x_factor_);
  const Value along = drawn(y_factor_);
  const Value zero = ZerosLike(sign);
  const Value one = OnesLike(sign);
  return ImageTransform(
      x, Concat({one, across, zero, along, one, zero, zero, zero}, 1),
      ResamplingOf(options_));
}

LayerPtr RandomShear(const RandomFactor& x_factor, const RandomFactor& y_factor,
                     const RandomResamplingOptions& options) {
  return std::make_shared<RandomShearLayer>(x_factor, y_factor, options);
}

void RandomPerspectiveLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(
      visitor,
      Described("factor", "The probability; one number is [0, number]."),
      factor_, false);
  visitor.Visit("scale", options_.scale);
  VisitInterpolation(visitor, options_.interpolation);
  visitor.Visit("fill_value", options_.fill_value);
  VisitSeed(visitor);
}

std::string RandomPerspectiveLayer::Mistake() const {
  if (!(options_.scale >= 0 && options_.scale <= 1)) {
    return absl::StrCat("scale must be in [0, 1], got ", options_.scale);
  }
  return Outside("factor", factor_, 0);
}

Value RandomPerspectiveLayer::Augment(Value x, ImageDraws& draws) {
  const Value probability = draws.Uniform(factor_.lower, factor_.upper);
  const Value is_changed = draws.Uniform(0, 1) < probability;
  const double half = options_.scale / 2;
  const auto shift = [&] { return draws.Uniform(-half, half); };
  // One after the other: the order of arguments is not defined.
  internal::CornerShifts shifts;
  shifts.right = shift();
  shifts.bottom = shift();
  shifts.last_x = shift();
  shifts.last_y = shift();
  return Select(
      is_changed,
      internal::ChangePerspective(x, shifts,
                                  {.interpolation = options_.interpolation,
                                   .fill_value = options_.fill_value}),
      x);
}

LayerPtr RandomPerspective(const UnitFactor& factor,
                           const RandomPerspectiveOptions& options) {
  return std::make_shared<RandomPerspectiveLayer>(factor, options);
}

namespace internal {

// The transform takes the moved corners to those of the image. The first corner
// does not move, and the second and third ones stay on their edges, so that
// Keras' eight equations have this solution.
Value ChangePerspective(Value images, const CornerShifts& shifts,
                        const ImageTransformOptions& options) {
  const int64_t height = images.shape().dim(1);
  const int64_t width = images.shape().dim(2);
  if (height < 2 || width < 2) {
    images.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "RandomPerspective: expected images of known size with at least 2 rows "
        "and 2 columns, not ",
        images.type().ToString())));
    return Value();
  }
  const auto last_row = static_cast<double>(height - 1);
  const auto last_column = static_cast<double>(width - 1);
  const auto moved = [](Value shift, double position) {
    return (AsTransformElement(shift) + 1.0) * position;
  };
  const Value right = moved(shifts.right, last_column);
  const Value bottom = moved(shifts.bottom, last_row);
  const Value last_x = moved(shifts.last_x, last_column);
  const Value last_y = moved(shifts.last_y, last_row);
  const Value c0 = (last_y / bottom - 1.0) / last_x;
  const Value c1 = (last_x / right - 1.0) / last_y;
  const Value a0 = (c0 + 1.0 / right) * last_column;
  const Value b1 = (c1 + 1.0 / bottom) * last_row;
  const Value zero = ZerosLike(c0);
  return ImageTransform(
      images, Concat({a0, zero, zero, zero, b1, zero, c0, c1}, 1), options);
}

}  // namespace internal

void RandomCropLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("height", height_);
  visitor.VisitPositive("width", width_);
  VisitSeed(visitor);
}

std::string RandomCropLayer::Mistake() const {
  if (height_ >= 1 && width_ >= 1) return "";
  return absl::StrCat(height_ < 1 ? "height" : "width",
                      " must be at least 1, got ", std::min(height_, width_));
}

Value RandomCropLayer::CropAtRandom(Value x, ImageDraws& draws) const {
  const auto positions = [&](int64_t extent, int64_t count) {
    const Value start =
        draws.UniformOfBatch(1, 0, static_cast<double>(extent - count + 1));
    return PositionsFrom(Reshape(start, {}), count);
  };
  const Value rows = positions(x.shape().dim(1), height_);
  const Value columns = positions(x.shape().dim(2), width_);
  return Gather(Gather(x, rows, 1), columns, 2);
}

Value RandomCropLayer::Augment(Value x, ImageDraws& draws) {
  const int64_t height = x.shape().dim(1);
  const int64_t width = x.shape().dim(2);
  if (height > height_ && width > width_) return CropAtRandom(x, draws);
  // The part starts where one of the same aspect ratio would, and has the
  // layer's size as far as the image reaches.
  const int64_t ratio_height =
      std::max<int64_t>(std::min(height, width * height_ / width_), 1);
  const int64_t ratio_width =
      std::max<int64_t>(std::min(width, height * width_ / height_), 1);
  const int64_t top = (height - ratio_height) / 2;
  const int64_t left = (width - ratio_width) / 2;
  const int64_t cropped_height = std::min(height_, height - top);
  const int64_t cropped_width = std::min(width_, width - left);
  x = Slice(x, {0, top, left, 0}, {-1, cropped_height, cropped_width, -1});
  if (cropped_height == height_ && cropped_width == width_) return x;
  return ResizeImage(x, height_, width_);
}

LayerPtr RandomCrop(int64_t height, int64_t width,
                    const RandomCropOptions& options) {
  return std::make_shared<RandomCropLayer>(height, width, options);
}

void RandomErasingLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor, "factor", factor_, false);
  VisitFactor(visitor, "scale", options_.scale, false);
  if (visitor.IsPresent("fill_value", !options_.fill_value.empty())) {
    visitor.VisitNumbers(
        Described(
            "fill_value",
            "One number, or one for each of three channels. Absent: noise."),
        options_.fill_value);
  }
  VisitValueRange(visitor, options_.value_range);
  VisitSeed(visitor);
}

std::string RandomErasingLayer::Mistake() const {
  const size_t count = options_.fill_value.size();
  if (count != 0 && count != 1 && count != 3) {
    return absl::StrCat("fill_value must be one number or three, got ", count);
  }
  return FirstOf(Outside("factor", factor_, 0),
                 Outside("scale", options_.scale, 0));
}

std::vector<int64_t> RandomErasingLayer::channel_counts() const {
  if (options_.fill_value.size() != 3) return {};
  return {3};
}

Value RandomErasingLayer::Fill(Value x, ImageDraws& draws) const {
  if (options_.fill_value.empty()) {
    return draws.NormalPixels() * options_.value_range.upper;
  }
  const auto count = static_cast<int64_t>(options_.fill_value.size());
  const Value numbers = x.builder()->Constant(Tensor::FromSpan<double>(
      {count}, absl::MakeConstSpan(options_.fill_value)));
  return Cast(numbers, x.dtype());
}

Value RandomErasingLayer::Augment(Value x, ImageDraws& draws) {
  const auto interval = [&](int64_t extent) {
    const auto whole = static_cast<double>(extent);
    const Value share =
        Sqrt(draws.Uniform(options_.scale.lower, options_.scale.upper));
    const Value length = share * whole;
    const Value start = draws.Uniform(0, 1) * (whole - length);
    return std::pair<Value, Value>(start, start + length);
  };
  const auto [left, right] = interval(x.shape().dim(2));
  const auto [top, bottom] = interval(x.shape().dim(1));
  const Value probability = draws.Uniform(factor_.lower, factor_.upper);
  const Value is_erased = draws.Uniform(0, 1) < probability;
  const Value fill = internal::Clip(Fill(x, draws), options_.value_range);
  return Select(is_erased, internal::Erase(x, {left, right, top, bottom}, fill),
                x);
}

LayerPtr RandomErasing(const UnitFactor& factor,
                       const RandomErasingOptions& options) {
  return std::make_shared<RandomErasingLayer>(factor, options);
}

}  // namespace muster
