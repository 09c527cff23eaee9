#include "common/learn/nn/image_input.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {

Value ToFloatImage(Value x, int rank, absl::string_view layer, bool is_valid,
                   absl::string_view expectation) {
  if (!is_valid) {
    x.builder()->ReportError(
        absl::InvalidArgumentError(absl::StrCat(layer, ": ", expectation)));
    return Value();
  }
  if (x.shape().rank() != rank) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(layer, ": expected an input [batch, ",
                     rank == 4 ? "height, width" : "steps", ", channels], got ",
                     x.type().ToString())));
    return Value();
  }
  return IsFloating(x.dtype()) ? x : Cast(x, DType::kFloat32);
}

int64_t ChannelCount(const Shape& input) {
  return input.rank() == 0 ? 0 : input.dims().back();
}

bool HasKnownExtents(const Shape& input) {
  for (int axis = 1; axis < input.rank(); ++axis) {
    if (input.dim(axis) == Shape::kUnknown) return false;
  }
  return true;
}

}  // namespace muster::internal
