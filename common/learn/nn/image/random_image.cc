#include "common/learn/nn/image/random_image.h"

#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/resampling.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

Value DrawnTransformElement(ImageDraws& draws, const RandomFactor& factor) {
  return AsTransformElement(draws.Uniform(factor.lower, factor.upper));
}

// Reverses the order along `axis`.
Value Reverse(Value x, int axis) {
  const int64_t extent = x.shape().dim(axis);
  std::vector<int64_t> positions;
  for (int64_t i = extent; i > 0; --i) positions.push_back(i - 1);
  const Value indices = x.builder()->Constant(
      Tensor::FromSpan<int64_t>({extent}, absl::MakeConstSpan(positions)));
  return Gather(x, indices, axis);
}

// Returns {a0, a1, a2, b0, b1, b2} of each image, with a2 and b2 such that the
// center is a fixed point.
Value TransformAroundMiddle(Value x, Value a0, Value a1, Value b0, Value b1) {
  const double middle_x = static_cast<double>(x.shape().dim(2) - 1) / 2;
  const double middle_y = static_cast<double>(x.shape().dim(1) - 1) / 2;
  const Value a2 = middle_x - middle_x * a0 - middle_y * a1;
  const Value b2 = middle_y - middle_x * b0 - middle_y * b1;
  const Value zero = ZerosLike(a0);
  return Concat({a0, a1, a2, b0, b1, b2, zero, zero}, 1);
}

bool IsZoom(const RandomFactor& factor) {
  return factor.lower > -1 && factor.lower <= factor.upper && factor.upper <= 1;
}

}  // namespace

void RandomFlipLayer::VisitConfig(ConfigVisitor& visitor) {
  static constexpr absl::string_view kNames[] = {"horizontal", "vertical",
                                                 "horizontal_and_vertical"};
  visitor.Visit("mode", mode_, kNames);
  VisitSeed(visitor);
}

Value RandomFlipLayer::Augment(Value x, ImageDraws& draws) {
  const Value is_flipped = draws.Uniform(0, 1) <= 0.5;
  Value flipped = x;
  if (mode_ != FlipMode::kVertical) flipped = Reverse(flipped, 2);
  if (mode_ != FlipMode::kHorizontal) flipped = Reverse(flipped, 1);
  return Select(is_flipped, flipped, x);
}

LayerPtr RandomFlip(FlipMode mode, const RandomFlipOptions& options) {
  return std::make_shared<RandomFlipLayer>(mode, options);
}

void RandomRotationLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor,
              Described("factor", "One number, for [-number, number], or two."),
              factor_);
  VisitResampling(visitor, options_);
  VisitSeed(visitor);
}

Value RandomRotationLayer::Augment(Value x, ImageDraws& draws) {
  const Value turns = DrawnTransformElement(draws, factor_);
  const Value angle = turns * (2 * std::numbers::pi);
  const Value cosine = Cos(angle);
  const Value sine = Sin(angle);
  return ImageTransform(x,
                        TransformAroundMiddle(x, cosine, -sine, sine, cosine),
                        ResamplingOf(options_));
}

LayerPtr RandomRotation(const RandomFactor& factor,
                        const RandomRotationOptions& options) {
  return std::make_shared<RandomRotationLayer>(factor, options);
}

void RandomZoomLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor, "height_factor", height_factor_);
  if (visitor.IsPresent("width_factor", options_.width_factor.has_value())) {
    RandomFactor factor = options_.width_factor.value_or(height_factor_);
    VisitFactor(visitor,
                Described("width_factor", "That of the height when absent."),
                factor);
    options_.width_factor = factor;
  }
  VisitResampling(visitor, options_);
  VisitSeed(visitor);
}

std::string RandomZoomLayer::Mistake() const {
  const RandomFactor width_factor =
      options_.width_factor.value_or(height_factor_);
  if (IsZoom(height_factor_) && IsZoom(width_factor)) return "";
  return absl::StrCat(
      "height_factor and width_factor must be in (-1, 1] and ascending, got [",
      height_factor_.lower, ", ", height_factor_.upper, "] and [",
      width_factor.lower, ", ", width_factor.upper, "]");
}

Value RandomZoomLayer::Augment(Value x, ImageDraws& draws) {
  const Value height = DrawnTransformElement(draws, height_factor_);
  const Value width = options_.width_factor.has_value()
                          ? DrawnTransformElement(draws, *options_.width_factor)
                          : height;
  const Value zero = ZerosLike(height);
  return ImageTransform(
      x, TransformAroundMiddle(x, width + 1.0, zero, zero, height + 1.0),
      ResamplingOf(options_));
}

LayerPtr RandomZoom(const RandomFactor& height_factor,
                    const RandomZoomOptions& options) {
  return std::make_shared<RandomZoomLayer>(height_factor, options);
}

}  // namespace muster
