#include "common/learn/nn/layers/pooling.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Returns `x` as floats, and sets the options of the op.
Value Check(Value x, Size2D pool_size, const Pooling2DOptions& options,
            const Layer& layer, Pool2DOptions& op_options) {
  const Size2D strides = options.strides.value_or(pool_size);
  op_options = {.window = pool_size.extents(),
                .strides = strides.extents(),
                .padding = ToPadding2D(options.padding)};
  const bool is_valid = std::min({pool_size.height, pool_size.width,
                                  strides.height, strides.width}) >= 1;
  return internal::ToFloatImage(
      x, 4, absl::StrCat(layer.kind(), " ", layer.name()), is_valid,
      "expected pool_size and strides of at least 1");
}

Value CheckGlobal(Value x, const Layer& layer) {
  return internal::ToFloatImage(
      x, 4, absl::StrCat(layer.kind(), " ", layer.name()), true, "");
}

void VisitPooling(ConfigVisitor& visitor, Size2D& pool_size,
                  Pooling2DOptions& options) {
  VisitSize(visitor, "pool_size", pool_size);
  Size2D strides = options.strides.value_or(pool_size);
  VisitSize(visitor, "strides", strides);
  options.strides = strides;
  VisitPadding(visitor, options.padding);
}

}  // namespace

void MaxPooling2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitPooling(visitor, pool_size_, options_);
}

Value MaxPooling2DLayer::Call(Value x, const CallContext&) {
  Pool2DOptions options;
  x = Check(x, pool_size_, options_, *this, options);
  return x.ok() ? MaxPool2D(x, options) : x;
}

void AveragePooling2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitPooling(visitor, pool_size_, options_);
}

Value AveragePooling2DLayer::Call(Value x, const CallContext&) {
  Pool2DOptions options;
  x = Check(x, pool_size_, options_, *this, options);
  return x.ok() ? AveragePool2D(x, options) : x;
}

void GlobalMaxPooling2DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("keepdims", keepdims_);
}

Value GlobalMaxPooling2DLayer::Call(Value x, const CallContext&) {
  x = CheckGlobal(x, *this);
  return x.ok() ? Max(x, {1, 2}, {.keep_dims = keepdims_}) : x;
}

void GlobalAveragePooling2DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("keepdims", keepdims_);
}

Value GlobalAveragePooling2DLayer::Call(Value x, const CallContext&) {
  x = CheckGlobal(x, *this);
  return x.ok() ? Mean(x, {1, 2}, {.keep_dims = keepdims_}) : x;
}

LayerPtr MaxPooling2D(Size2D pool_size, const Pooling2DOptions& options) {
  return std::make_shared<MaxPooling2DLayer>(pool_size, options);
}

LayerPtr AveragePooling2D(Size2D pool_size, const Pooling2DOptions& options) {
  return std::make_shared<AveragePooling2DLayer>(pool_size, options);
}

LayerPtr GlobalMaxPooling2D(const GlobalPooling2DOptions& options) {
  return std::make_shared<GlobalMaxPooling2DLayer>(options);
}

LayerPtr GlobalAveragePooling2D(const GlobalPooling2DOptions& options) {
  return std::make_shared<GlobalAveragePooling2DLayer>(options);
}

}  // namespace muster
