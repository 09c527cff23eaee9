#include "common/learn/nn/layers/pooling_1d.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"

namespace muster {

void Pooling1DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitSize(visitor, "pool_size", pool_size_);
  int64_t strides = options_.strides.value_or(pool_size_);
  VisitSize(visitor, "strides", strides);
  options_.strides = strides;
  VisitPadding(visitor, options_.padding);
}

Value Pooling1DLayer::Call(Value x, const CallContext&) {
  const int64_t strides = options_.strides.value_or(pool_size_);
  x = internal::ToFloatImage(x, 3, absl::StrCat(kind(), " ", name()),
                             std::min(pool_size_, strides) >= 1,
                             "expected pool_size and strides of at least 1");
  if (!x.ok()) return x;
  // As images of height 1.
  const Pool2DOptions options = {.window = {1, pool_size_},
                                 .strides = {1, strides},
                                 .padding = ToPadding2D(options_.padding)};
  const Value images = ExpandDims(x, 1);
  return Squeeze(
      takes_mean_ ? AveragePool2D(images, options) : MaxPool2D(images, options),
      {1});
}

void GlobalPooling1DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("keepdims", keepdims_);
}

Value GlobalPooling1DLayer::Call(Value x, const CallContext& context) {
  const Value input = x;
  x = internal::ToFloatImage(x, 3, absl::StrCat(kind(), " ", name()), true, "");
  if (!x.ok()) return x;
  const ReduceOptions options = {.keep_dims = keepdims_};
  if (!takes_mean_) return Max(x, {1}, options);
  const Value mask =
      context.masks == nullptr ? Value() : context.masks->Find(input);
  if (!mask.ok()) return Mean(x, {1}, options);
  const Value counts = ExpandDims(mask, -1);
  return Sum(Select(counts, x, ZerosLike(x)), {1}, options) /
         Sum(Cast(counts, x.dtype()), {1}, options);
}

LayerPtr MaxPooling1D(int64_t pool_size, const Pooling1DOptions& options) {
  return std::make_shared<Pooling1DLayer>(false, pool_size, options);
}

LayerPtr AveragePooling1D(int64_t pool_size, const Pooling1DOptions& options) {
  return std::make_shared<Pooling1DLayer>(true, pool_size, options);
}

LayerPtr GlobalMaxPooling1D(const GlobalPooling1DOptions& options) {
  return std::make_shared<GlobalPooling1DLayer>(false, options);
}

LayerPtr GlobalAveragePooling1D(const GlobalPooling1DOptions& options) {
  return std::make_shared<GlobalPooling1DLayer>(true, options);
}

}  // namespace muster
