#include "common/learn/nn/image/random_image.h"

#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/interpolation.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

bool AreImages(const Layer& layer, Value x) {
  const Shape& shape = x.shape();
  if (shape.rank() == 4 && shape.dim(1) > 0 && shape.dim(2) > 0) return true;
  x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
      layer.kind(),
      ": expected images [batch, height, width, channels] of known height and "
      "width, not ",
      x.type().ToString())));
  return false;
}

// Returns the `draw`-th random number of each image: float32 [batch, 1],
// uniform in [0, 1).
Value DrawForEachImage(Value x, uint64_t layer_seed, int64_t draw) {
  const Value corner = Slice(x, {0, 0, 0, 0}, {-1, 1, 1, 1});
  const Value seed = FoldInSeed(
      StepSeed(*x.builder()),
      static_cast<int64_t>(FoldIn(layer_seed, static_cast<uint64_t>(draw))));
  return RandomUniformLike(seed, Reshape(corner, {-1, 1}));
}

Value Between(const RandomFactor& factor, Value unit) {
  return unit * (factor.upper - factor.lower) + factor.lower;
}

uint64_t SeedOf(const Layer& layer, uint64_t own, const CallContext& context) {
  return FoldIn(own != 0 ? own : context.seed, layer.path());
}

Value AsFloats(Value x) {
  return IsFloating(x.dtype()) ? x : Cast(x, DType::kFloat32);
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

// Visits a list of one or two numbers.
void VisitFactor(ConfigVisitor& visitor, ConfigName name,
                 RandomFactor& factor) {
  std::vector<double> numbers;
  if (visitor.IsPresent(name, true)) {
    numbers = {factor.lower, factor.upper};
    visitor.Visit(name, numbers);
  }
  if (numbers.size() == 1) {
    factor = RandomFactor(numbers[0]);
  } else if (numbers.size() == 2) {
    factor = RandomFactor(numbers[0], numbers[1]);
  } else {
    visitor.Refuse(
        name, absl::StrCat("must be one number or two, got ", numbers.size()));
  }
}

// Visits the options of layers that interpolate and extrapolate pixels.
template <typename Options>
void VisitResampling(ConfigVisitor& visitor, Options& options) {
  static constexpr absl::string_view kFillModes[] = {"constant", "nearest",
                                                     "reflect", "wrap"};
  visitor.Visit("fill_mode", options.fill_mode, kFillModes);
  VisitInterpolation(visitor, options.interpolation);
  visitor.Visit("fill_value", options.fill_value);
  visitor.Visit("seed", options.seed);
}

}  // namespace

void RandomFlipLayer::VisitConfig(ConfigVisitor& visitor) {
  static constexpr absl::string_view kNames[] = {"horizontal", "vertical",
                                                 "horizontal_and_vertical"};
  visitor.Visit("mode", mode_, kNames);
  visitor.Visit("seed", seed_);
}

Value RandomFlipLayer::Call(Value x, const CallContext& context) {
  x = AsFloats(x);
  if (!context.training) return x;
  if (!AreImages(*this, x)) return Value();
  const Value unit = DrawForEachImage(x, SeedOf(*this, seed_, context), 0);
  const Value is_flipped = Reshape(unit <= 0.5, {-1, 1, 1, 1});
  Value flipped = x;
  if (mode_ != FlipMode::kVertical) flipped = Reverse(flipped, 2);
  if (mode_ != FlipMode::kHorizontal) flipped = Reverse(flipped, 1);
  return Select(is_flipped, flipped, x);
}

LayerPtr RandomFlip(FlipMode mode, const RandomFlipOptions& options) {
  return std::make_shared<RandomFlipLayer>(mode, options);
}

void RandomRotationLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor, "factor", factor_);
  VisitResampling(visitor, options_);
}

Value RandomRotationLayer::Call(Value x, const CallContext& context) {
  x = AsFloats(x);
  if (!context.training) return x;
  if (!AreImages(*this, x)) return Value();
  const Value unit =
      DrawForEachImage(x, SeedOf(*this, options_.seed, context), 0);
  const Value angle = Between(factor_, unit) * (2 * std::numbers::pi);
  const Value cosine = Cos(angle);
  const Value sine = Sin(angle);
  return ImageTransform(x,
                        TransformAroundMiddle(x, cosine, -sine, sine, cosine),
                        {.interpolation = options_.interpolation,
                         .fill_mode = options_.fill_mode,
                         .fill_value = options_.fill_value});
}

LayerPtr RandomRotation(const RandomFactor& factor,
                        const RandomRotationOptions& options) {
  return std::make_shared<RandomRotationLayer>(factor, options);
}

void RandomZoomLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor, "height_factor", height_factor_);
  if (visitor.IsPresent("width_factor", options_.width_factor.has_value())) {
    RandomFactor factor = options_.width_factor.value_or(height_factor_);
    VisitFactor(visitor, "width_factor", factor);
    options_.width_factor = factor;
  }
  VisitResampling(visitor, options_);
}

Value RandomZoomLayer::Call(Value x, const CallContext& context) {
  x = AsFloats(x);
  if (!context.training) return x;
  if (!AreImages(*this, x)) return Value();
  const RandomFactor width_factor =
      options_.width_factor.value_or(height_factor_);
  if (!IsZoom(height_factor_) || !IsZoom(width_factor)) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "RandomZoom: factors must be in (-1, 1] and ascending; got [",
        height_factor_.lower, ", ", height_factor_.upper, "] and [",
        width_factor.lower, ", ", width_factor.upper, "]")));
    return Value();
  }
  const uint64_t seed = SeedOf(*this, options_.seed, context);
  const Value height = Between(height_factor_, DrawForEachImage(x, seed, 0));
  const Value width = options_.width_factor.has_value()
                          ? Between(width_factor, DrawForEachImage(x, seed, 1))
                          : height;
  const Value zero = ZerosLike(height);
  return ImageTransform(
      x, TransformAroundMiddle(x, width + 1.0, zero, zero, height + 1.0),
      {.interpolation = options_.interpolation,
       .fill_mode = options_.fill_mode,
       .fill_value = options_.fill_value});
}

LayerPtr RandomZoom(const RandomFactor& height_factor,
                    const RandomZoomOptions& options) {
  return std::make_shared<RandomZoomLayer>(height_factor, options);
}

}  // namespace muster
