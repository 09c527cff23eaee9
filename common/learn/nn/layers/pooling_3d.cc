#include "common/learn/nn/layers/pooling_3d.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"

namespace muster {
void Pooling3DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitSize(visitor, "pool_size", pool_size_);
  Size3D strides = options_.strides.value_or(pool_size_);
  VisitSize(visitor, "strides", strides);
  options_.strides = strides;
  VisitPadding(visitor, options_.padding);
}

Value Pooling3DLayer::Call(Value x, const CallContext&) {
  const Size3D strides = options_.strides.value_or(pool_size_);
  const bool is_valid =
      std::min({pool_size_.depth, pool_size_.height, pool_size_.width,
                strides.depth, strides.height, strides.width}) >= 1;
  x = internal::ToFloatImage(
      x, 5, absl::StrCat(kind(), " ", name()),
      is_valid && internal::HasKnownExtents(x.shape()),
      "expected pool_size and strides of at least 1, and volumes of known "
      "extents");
  if (!x.ok()) return x;
  const auto pool = [this](Value images, const Pool2DOptions& options) {
    return takes_mean_ ? AveragePool2D(images, options)
                       : MaxPool2D(images, options);
  };
  const Padding2D padding = ToPadding2D(options_.padding);
  const int64_t depth = x.shape().dim(1);
  const int64_t channels = x.shape().dim(4);
  // Each slice as an image.
  Value y = pool(Reshape(x, {-1, x.shape().dim(2), x.shape().dim(3), channels}),
                 {.window = {pool_size_.height, pool_size_.width},
                  .strides = {strides.height, strides.width},
                  .padding = padding});
  if (!y.ok()) return y;
  const int64_t height = y.shape().dim(1);
  const int64_t width = y.shape().dim(2);
  // Each volume as an image of the height `depth`.
  y = pool(Reshape(y, {-1, depth, height * width, channels}),
           {.window = {pool_size_.depth, 1},
            .strides = {strides.depth, 1},
            .padding = padding});
  if (!y.ok()) return y;
  return Reshape(y, {-1, y.shape().dim(1), height, width, channels});
}

void GlobalPooling3DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("keepdims", keepdims_);
}

Value GlobalPooling3DLayer::Call(Value x, const CallContext&) {
  x = internal::ToFloatImage(x, 5, absl::StrCat(kind(), " ", name()), true, "");
  if (!x.ok()) return x;
  const ReduceOptions options = {.keep_dims = keepdims_};
  return takes_mean_ ? Mean(x, {1, 2, 3}, options) : Max(x, {1, 2, 3}, options);
}

LayerPtr MaxPooling3D(Size3D pool_size, const Pooling3DOptions& options) {
  return std::make_shared<Pooling3DLayer>(false, pool_size, options);
}

LayerPtr AveragePooling3D(Size3D pool_size, const Pooling3DOptions& options) {
  return std::make_shared<Pooling3DLayer>(true, pool_size, options);
}

LayerPtr GlobalMaxPooling3D(const GlobalPooling3DOptions& options) {
  return std::make_shared<GlobalPooling3DLayer>(false, options);
}

LayerPtr GlobalAveragePooling3D(const GlobalPooling3DOptions& options) {
  return std::make_shared<GlobalPooling3DLayer>(true, options);
}

}  // namespace muster
