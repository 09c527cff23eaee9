#include "common/learn/nn/image/center_crop.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/aspect_ratio.h"
#include "common/learn/nn/layer.h"

namespace muster {

void CenterCropLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("height", height_);
  visitor.VisitPositive("width", width_);
}

Value CenterCropLayer::Call(Value x, const CallContext&) {
  const Shape& shape = x.shape();
  if (height_ < 1 || width_ < 1 || shape.rank() != 4 || shape.dim(1) < 1 ||
      shape.dim(2) < 1) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "CenterCrop(", height_, ", ", width_,
        "): expected a height and width of at least 1 and images [batch, "
        "height, width, channels] of known height and width; the input is ",
        x.type().ToString())));
    return Value();
  }
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  const int64_t left_height = x.shape().dim(1) - height_;
  const int64_t left_width = x.shape().dim(2) - width_;
  if (left_height >= 0 && left_width >= 0) {
    return Slice(x, {0, left_height / 2, left_width / 2, 0},
                 {-1, height_, width_, -1});
  }
  return ResizeImage(CropToAspectRatio(x, height_, width_), height_, width_);
}

LayerPtr CenterCrop(int64_t height, int64_t width,
                    const CenterCropOptions& options) {
  return std::make_shared<CenterCropLayer>(height, width, options);
}

}  // namespace muster
