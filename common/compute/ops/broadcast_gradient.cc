#include "common/compute/ops/broadcast_gradient.h"

#include "common/compute/ops/shape_ops.h"

namespace muster::internal {

bool MayGrow(const Shape& shape, const Shape& other) {
  if (other.rank() > shape.rank()) return true;
  const int offset = shape.rank() - other.rank();
  for (int axis = 0; axis < other.rank(); ++axis) {
    const int64_t extent = shape.dim(axis + offset);
    const bool is_stretchable = extent == 1 || extent == Shape::kUnknown;
    if (is_stretchable && other.dim(axis) != 1) return true;
  }
  return false;
}

Value Unbroadcast(Value gradient, Value operand,
                  absl::Span<const Value> other_operands) {
  for (const Value& other : other_operands) {
    if (MayGrow(operand.shape(), other.shape())) {
      return SumLike(gradient, operand);
    }
  }
  return gradient;
}

}  // namespace muster::internal
