#include "common/learn/nn/layers/flatten.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"

namespace muster {

Value FlattenLayer::Call(Value x, const CallContext&) {
  const Shape& shape = x.shape();
  if (shape.rank() == 0) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Flatten: expected an input with a batch, got ", x.type().ToString())));
    return Value();
  }
  int64_t width = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    if (shape.dim(axis) == Shape::kUnknown) {
      x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
          "Flatten: all extents but the batch's must be known, got ",
          x.type().ToString())));
      return Value();
    }
    width *= shape.dim(axis);
  }
  if (shape.rank() == 2) return x;
  return Reshape(x, {-1, width});
}

LayerPtr Flatten(const FlattenOptions& options) {
  return std::make_shared<FlattenLayer>(options);
}

}  // namespace muster
