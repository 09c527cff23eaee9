#include "common/learn/nn/layers/pooling.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/window.h"

namespace muster {
namespace {

enum class Statistic { kMaximum, kMean };

// Pools images [batch, height, width, channels].
Value PoolImages(Value images, Statistic statistic,
                 const Pool2DOptions& options) {
  return statistic == Statistic::kMean ? AveragePool2D(images, options)
                                       : MaxPool2D(images, options);
}

// Each Pool() returns the statistic of the windows of `x`.

Value Pool(Value x, Statistic statistic, int64_t window, int64_t strides,
           Padding2D padding) {
  // As images of height 1.
  return Squeeze(
      PoolImages(
          ExpandDims(x, 1), statistic,
          {.window = {1, window}, .strides = {1, strides}, .padding = padding}),
      {1});
}

Value Pool(Value x, Statistic statistic, Size2D window, Size2D strides,
           Padding2D padding) {
  return PoolImages(x, statistic,
                    {.window = window.extents(),
                     .strides = strides.extents(),
                     .padding = padding});
}

// Pools along height and width first, then along depth: the maximum and the
// mean of a window are those of its slices.
Value Pool(Value x, Statistic statistic, Size3D window, Size3D strides,
           Padding2D padding) {
  const int64_t depth = x.shape().dim(1);
  const int64_t channels = x.shape().dim(4);
  // Each slice as an image.
  Value y = PoolImages(
      Reshape(x, {-1, x.shape().dim(2), x.shape().dim(3), channels}), statistic,
      {.window = {window.height, window.width},
       .strides = {strides.height, strides.width},
       .padding = padding});
  if (!y.ok()) return y;
  const int64_t height = y.shape().dim(1);
  const int64_t width = y.shape().dim(2);
  // Each volume as an image of the height `depth`.
  y = PoolImages(Reshape(y, {-1, depth, height * width, channels}), statistic,
                 {.window = {window.depth, 1},
                  .strides = {strides.depth, 1},
                  .padding = padding});
  if (!y.ok()) return y;
  return Reshape(y, {-1, y.shape().dim(1), height, width, channels});
}

// "MaxPooling2D"
std::string PoolingKind(Statistic statistic, int axis_count) {
  return absl::StrCat(statistic == Statistic::kMean ? "Average" : "Max",
                      "Pooling", axis_count, "D");
}

template <typename Size>
class PoolingLayer : public Layer {
 public:
  PoolingLayer(Statistic statistic, Size pool_size,
               const PoolingOptions<Size>& options)
      : Layer(options.name),
        statistic_(statistic),
        pool_size_(pool_size),
        options_(options) {}

  std::string kind() const override {
    return PoolingKind(statistic_, kAxisCount<Size>);
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    VisitSize(visitor, "pool_size", pool_size_);
    Size strides = options_.strides.value_or(pool_size_);
    VisitSize(visitor, "strides", strides);
    options_.strides = strides;
    VisitPadding(visitor, options_.padding);
  }

 protected:
  Value Call(Value x, const CallContext&) override {
    const Size strides = options_.strides.value_or(pool_size_);
    const bool is_valid =
        std::min(SmallestExtent(pool_size_), SmallestExtent(strides)) >= 1;
    // The slices of a volume are reshaped to images.
    constexpr bool kNeedsExtents = kAxisCount<Size> == 3;
    x = internal::ToFloatImage(
        x, kAxisCount<Size> + 2, absl::StrCat(kind(), " ", name()),
        is_valid && (!kNeedsExtents || internal::HasKnownExtents(x.shape())),
        kNeedsExtents
            ? "expected pool_size and strides of at least 1, and volumes of "
              "known extents"
            : "expected pool_size and strides of at least 1");
    if (!x.ok()) return x;
    return Pool(x, statistic_, pool_size_, strides,
                ToPadding2D(options_.padding));
  }

 private:
  const Statistic statistic_;
  Size pool_size_;
  PoolingOptions<Size> options_;
};

class GlobalPoolingLayer : public Layer {
 public:
  GlobalPoolingLayer(Statistic statistic, int axis_count,
                     const GlobalPoolingOptions& options)
      : Layer(options.name),
        statistic_(statistic),
        axis_count_(axis_count),
        keepdims_(options.keepdims) {}

  std::string kind() const override {
    return absl::StrCat("Global", PoolingKind(statistic_, axis_count_));
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    visitor.Visit("keepdims", keepdims_);
  }

 protected:
  Value Call(Value x, const CallContext& context) override {
    const Value input = x;
    x = internal::ToFloatImage(x, axis_count_ + 2,
                               absl::StrCat(kind(), " ", name()), true, "");
    if (!x.ok()) return x;
    const ReduceOptions options = {.keep_dims = keepdims_};
    std::vector<int64_t> axes(axis_count_);
    std::iota(axes.begin(), axes.end(), 1);
    if (statistic_ == Statistic::kMaximum) return Max(x, axes, options);
    const Value mask = axis_count_ != 1 || context.masks == nullptr
                           ? Value()
                           : context.masks->Find(input);
    if (!mask.ok()) return Mean(x, axes, options);
    const Value counts = ExpandDims(mask, -1);
    return Sum(Select(counts, x, ZerosLike(x)), axes, options) /
           Sum(Cast(counts, x.dtype()), axes, options);
  }

 private:
  const Statistic statistic_;
  const int axis_count_;  // The number of spatial axes.
  bool keepdims_;
};

}  // namespace

LayerPtr MaxPooling1D(int64_t pool_size, const Pooling1DOptions& options) {
  return std::make_shared<PoolingLayer<int64_t>>(Statistic::kMaximum, pool_size,
                                                 options);
}
LayerPtr MaxPooling2D(Size2D pool_size, const Pooling2DOptions& options) {
  return std::make_shared<PoolingLayer<Size2D>>(Statistic::kMaximum, pool_size,
                                                options);
}
LayerPtr MaxPooling3D(Size3D pool_size, const Pooling3DOptions& options) {
  return std::make_shared<PoolingLayer<Size3D>>(Statistic::kMaximum, pool_size,
                                                options);
}

LayerPtr AveragePooling1D(int64_t pool_size, const Pooling1DOptions& options) {
  return std::make_shared<PoolingLayer<int64_t>>(Statistic::kMean, pool_size,
                                                 options);
}
LayerPtr AveragePooling2D(Size2D pool_size, const Pooling2DOptions& options) {
  return std::make_shared<PoolingLayer<Size2D>>(Statistic::kMean, pool_size,
                                                options);
}
LayerPtr AveragePooling3D(Size3D pool_size, const Pooling3DOptions& options) {
  return std::make_shared<PoolingLayer<Size3D>>(Statistic::kMean, pool_size,
                                                options);
}

LayerPtr GlobalMaxPooling1D(const GlobalPooling1DOptions& options) {
  return std::make_shared<GlobalPoolingLayer>(Statistic::kMaximum, 1, options);
}
LayerPtr GlobalMaxPooling2D(const GlobalPooling2DOptions& options) {
  return std::make_shared<GlobalPoolingLayer>(Statistic::kMaximum, 2, options);
}
LayerPtr GlobalMaxPooling3D(const GlobalPooling3DOptions& options) {
  return std::make_shared<GlobalPoolingLayer>(Statistic::kMaximum, 3, options);
}

LayerPtr GlobalAveragePooling1D(const GlobalPooling1DOptions& options) {
  return std::make_shared<GlobalPoolingLayer>(Statistic::kMean, 1, options);
}
LayerPtr GlobalAveragePooling2D(const GlobalPooling2DOptions& options) {
  return std::make_shared<GlobalPoolingLayer>(Statistic::kMean, 2, options);
}
LayerPtr GlobalAveragePooling3D(const GlobalPooling3DOptions& options) {
  return std::make_shared<GlobalPoolingLayer>(Statistic::kMean, 3, options);
}

}  // namespace muster
