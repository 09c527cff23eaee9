#include "common/learn/nn/image/resizing.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/aspect_ratio.h"
#include "common/learn/nn/image/resampling.h"
#include "common/learn/nn/layer.h"

namespace muster {

void ResizingLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("height", height_);
  visitor.VisitPositive("width", width_);
  VisitInterpolation(visitor, options_.interpolation);
  visitor.Visit("crop_to_aspect_ratio", options_.crop_to_aspect_ratio);
  visitor.Visit("pad_to_aspect_ratio", options_.pad_to_aspect_ratio);
  visitor.Visit("fill_value", options_.fill_value);
}

Value ResizingLayer::Call(Value x, const CallContext&) {
  const auto refuse = [&](absl::string_view why) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Resizing(", height_, ", ", width_, "): ", why, x.type().ToString())));
    return Value();
  };
  const Shape& shape = x.shape();
  if (height_ < 1 || width_ < 1 || shape.rank() != 4) {
    return refuse(
        "expected a height and width of at least 1 and images [batch, height, "
        "width, channels]; the input is ");
  }
  const bool changes_ratio =
      options_.crop_to_aspect_ratio || options_.pad_to_aspect_ratio;
  if (options_.crop_to_aspect_ratio && options_.pad_to_aspect_ratio) {
    return refuse(
        "either crop_to_aspect_ratio or pad_to_aspect_ratio; the input is ");
  }
  if (changes_ratio &&
      (shape.dim(1) == Shape::kUnknown || shape.dim(2) == Shape::kUnknown)) {
    return refuse("the height and width of the images must be known, not ");
  }

  const DType dtype = x.dtype();
  const bool is_rounded =
      options_.interpolation == Interpolation::kBilinear && !IsFloating(dtype);
  if (is_rounded) x = Cast(x, DType::kFloat32);
  if (options_.crop_to_aspect_ratio) {
    x = CropToAspectRatio(x, height_, width_);
  }
  if (options_.pad_to_aspect_ratio) x = PadToAspectRatio(x);
  x = ResizeImage(x, height_, width_, options_.interpolation);
  return is_rounded ? Cast(Round(x), dtype) : x;
}

Value ResizingLayer::PadToAspectRatio(Value x) const {
  const int64_t height = x.shape().dim(1);
  const int64_t width = x.shape().dim(2);
  const int64_t padded_height = std::max(height, width * height_ / width_);
  const int64_t padded_width = std::max(width, height * width_ / height_);
  const int64_t top = (padded_height - height) / 2;
  const int64_t left = (padded_width - width) / 2;
  return Pad(x, {0, 0, top, top, left, left, 0, 0}, options_.fill_value);
}

LayerPtr Resizing(int64_t height, int64_t width,
                  const ResizingOptions& options) {
  return std::make_shared<ResizingLayer>(height, width, options);
}

}  // namespace muster
