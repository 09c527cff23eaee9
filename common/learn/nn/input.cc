#include "common/learn/nn/input.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"

namespace muster {

InputLayer::InputLayer(const Shape& shape, const InputLayerOptions& options)
    : Layer(options.name), type_{options.dtype, shape} {
  type_.shape.InsertDim(0, Shape::kUnknown);
}

Value InputLayer::Call(Value x, const CallContext&) {
  const int rank = type_.shape.rank();
  const bool has_single = rank > 1 && type_.shape.dim(rank - 1) == 1;
  if (has_single && x.shape().rank() == rank - 1) {
    x = ExpandDims(x, -1);
  } else if (x.shape().rank() == rank + 1 && x.shape().dim(rank) == 1) {
    x = Squeeze(x, {-1});
  }
  const bool is_text =
      x.dtype() == DType::kString || type_.dtype == DType::kString;
  if (!x.shape().IsCompatibleWith(type_.shape) ||
      (is_text && x.dtype() != type_.dtype)) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("input", name().empty() ? "" : " ", name(), ": expected ",
                     type_.ToString(), ", got ", x.type().ToString())));
    return Value();
  }
  return x.dtype() == type_.dtype ? x : Cast(x, type_.dtype);
}

LayerOutput Input(const Shape& shape, const InputLayerOptions& options) {
  auto call = std::make_shared<LayerCall>();
  call->layer = std::make_shared<InputLayer>(shape, options);
  return LayerOutput(std::move(call), 0);
}

}  // namespace muster
