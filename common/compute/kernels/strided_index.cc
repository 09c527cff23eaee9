#include "common/compute/kernels/strided_index.h"

#include <algorithm>

namespace muster::internal {

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape.dim(axis);
  }
  return strides;
}

StridedIndex DenseIndex(const Shape& shape) {
  return StridedIndex(shape.dims(), RowMajorStrides(shape));
}

StridedIndex BroadcastIndex(const Shape& from, const Shape& to) {
  const std::vector<int64_t> from_strides = RowMajorStrides(from);
  std::vector<int64_t> strides(to.rank(), 0);
  const int offset = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from.dim(axis) != 1) strides[axis + offset] = from_strides[axis];
  }
  return StridedIndex(to.dims(), strides);
}

StridedIndex BoxIndex(const Shape& part, const Shape& whole,
                      absl::Span<const int64_t> begin) {
  const std::vector<int64_t> strides = RowMajorStrides(whole);
  int64_t offset = 0;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    offset += begin[axis] * strides[axis];
  }
  return StridedIndex(part.dims(), strides, offset);
}

std::vector<int64_t> BroadcastAxes(const Shape& like, const Shape& shape) {
  std::vector<int64_t> axes;
  const int offset = shape.rank() - like.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_broadcast =
        axis < offset || (like.dim(axis - offset) == 1 && shape.dim(axis) != 1);
    if (is_broadcast) axes.push_back(axis);
  }
  return axes;
}

ReductionIndex::ReductionIndex(const Shape& shape,
                               absl::Span<const int64_t> axes) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  std::vector<int64_t> extents_of[2];
  std::vector<int64_t> strides_of[2];
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_reduced =
        std::any_of(axes.begin(), axes.end(), [&](int64_t reduced) {
          return reduced == axis || reduced + shape.rank() == axis;
        });
    extents_of[is_reduced].push_back(shape.dim(axis));
    strides_of[is_reduced].push_back(strides[axis]);
  }
  kept = StridedIndex(extents_of[false], strides_of[false]);
  reduced = StridedIndex(extents_of[true], strides_of[true]);
}

}  // namespace muster::internal
