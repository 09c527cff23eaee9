#include "common/learn/nn/layers/adaptive_pooling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// The windows along an axis, each as `width` positions. A window of fewer
// repeats its last one.
struct Windows {
  int64_t width = 0;
  std::vector<int64_t> positions;
  // What each position counts in the mean of its window.
  std::vector<float> shares;
};

Windows WindowsOf(int64_t extent, int64_t count) {
  const auto begin = [&](int64_t i) { return i * extent / count; };
  const auto end = [&](int64_t i) {
    return ((i + 1) * extent + count - 1) / count;
  };
  Windows windows;
  for (int64_t i = 0; i < count; ++i) {
    windows.width = std::max(windows.width, end(i) - begin(i));
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = end(i) - begin(i);
    const int64_t repeats = windows.width - size + 1;
    for (int64_t k = 0; k < windows.width; ++k) {
      windows.positions.push_back(begin(i) + std::min(k, size - 1));
      const int64_t sharers = k < size - 1 ? size : size * repeats;
      windows.shares.push_back(1.0f / static_cast<float>(sharers));
    }
  }
  return windows;
}

// Pools axis 1 of [any, extent, any].
Value Pool(Value x, int64_t count, bool takes_mean) {
  const int64_t extent = x.shape().dim(1);
  if (extent == count) return x;
  int64_t width = extent / count;
  if (extent % count != 0) {
    const Windows windows = WindowsOf(extent, count);
    width = windows.width;
    const int64_t row_count = width * count;
    GraphBuilder& builder = *x.builder();
    x = Gather(x,
               builder.Constant(Tensor::FromSpan<int64_t>(
                   {row_count}, absl::MakeConstSpan(windows.positions))),
               1);
    if (takes_mean) {
      const Value shares = builder.Constant(Tensor::FromSpan<float>(
          {count, width, 1}, absl::MakeConstSpan(windows.shares)));
      const Value rows =
          Reshape(x, {-1, count, width, x.shape().dims().back()});
      return Sum(rows * Cast(shares, x.dtype()), {2});
    }
  }
  // As images of the width 1.
  const Pool2DOptions options = {.window = {width, 1}, .strides = {width, 1}};
  const Value images = ExpandDims(x, 2);
  return Squeeze(
      takes_mean ? AveragePool2D(images, options) : MaxPool2D(images, options),
      {2});
}

LayerPtr Make(bool takes_mean, std::vector<int64_t> output_size,
              const AdaptivePoolingOptions& options) {
  const int rank = static_cast<int>(output_size.size());
  return std::make_shared<AdaptivePoolingLayer>(
      takes_mean, rank, std::move(output_size), options);
}

}  // namespace

void AdaptivePoolingLayer::VisitConfig(ConfigVisitor& visitor) {
  std::vector<int64_t> size = output_size_;
  visitor.Visit(
      Described("output_size", "One number for all axes, or one for each."),
      size);
  if (size.size() == 1) size.assign(rank_, size.front());
  const bool is_valid =
      size.size() == static_cast<size_t>(rank_) &&
      std::all_of(size.begin(), size.end(), [](int64_t n) { return n >= 1; });
  if (is_valid) {
    output_size_ = std::move(size);
  } else {
    visitor.Refuse("output_size",
                   rank_ == 1
                       ? std::string("must be one number of at least 1")
                       : absl::StrCat("must be one number of at least 1, or ",
                                      rank_, ", one for each axis"));
  }
}

Value AdaptivePoolingLayer::Call(Value x, const CallContext&) {
  const bool is_valid = std::all_of(output_size_.begin(), output_size_.end(),
                                    [](int64_t size) { return size >= 1; });
  x = internal::ToFloatImage(
      x, rank_ + 2, absl::StrCat(kind(), " ", name()),
      is_valid && internal::HasKnownExtents(x.shape()),
      "expected an output_size of at least 1, and an input of known extents");
  if (!x.ok()) return x;
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  for (int axis = 1; axis <= rank_; ++axis) {
    int64_t inner = 1;
    for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    x = Pool(Reshape(x, {-1, dims[axis], inner}), output_size_[axis - 1],
             takes_mean_);
    if (!x.ok()) return x;
    dims[axis] = output_size_[axis - 1];
  }
  dims[0] = -1;
  return Reshape(x, dims);
}

LayerPtr AdaptiveAveragePooling1D(int64_t output_size,
                                  const AdaptivePoolingOptions& options) {
  return Make(true, {output_size}, options);
}

LayerPtr AdaptiveAveragePooling2D(Size2D output_size,
                                  const AdaptivePoolingOptions& options) {
  return Make(true, {output_size.height, output_size.width}, options);
}

LayerPtr AdaptiveAveragePooling3D(Size3D output_size,
                                  const AdaptivePoolingOptions& options) {
  return Make(true, {output_size.depth, output_size.height, output_size.width},
              options);
}

LayerPtr AdaptiveMaxPooling1D(int64_t output_size,
                              const AdaptivePoolingOptions& options) {
  return Make(false, {output_size}, options);
}

LayerPtr AdaptiveMaxPooling2D(Size2D output_size,
                              const AdaptivePoolingOptions& options) {
  return Make(false, {output_size.height, output_size.width}, options);
}

LayerPtr AdaptiveMaxPooling3D(Size3D output_size,
                              const AdaptivePoolingOptions& options) {
  return Make(false, {output_size.depth, output_size.height, output_size.width},
              options);
}

}  // namespace muster
