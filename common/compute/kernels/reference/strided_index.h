#ifndef COMMON_COMPUTE_KERNELS_REFERENCE_STRIDED_INDEX_H_
#define COMMON_COMPUTE_KERNELS_REFERENCE_STRIDED_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {

// Where in memory the elements of a tensor lie, when it is a view of another:
// broadcast, transposed, sliced or reduced.
class StridedIndex {
 public:
  StridedIndex() = default;
  StridedIndex(absl::Span<const int64_t> extents,
               absl::Span<const int64_t> strides, int64_t offset = 0)
      : extents_(extents.begin(), extents.end()),
        strides_(strides.begin(), strides.end()),
        offset_(offset) {}

  // The offset of the element at row-major `position` among the extents.
  int64_t operator()(int64_t position) const {
    int64_t index = offset_;
    for (size_t axis = extents_.size(); axis-- > 0;) {
      index += position % extents_[axis] * strides_[axis];
      position /= extents_[axis];
    }
    return index;
  }

  int64_t element_count() const {
    int64_t count = 1;
    for (const int64_t extent : extents_) count *= extent;
    return count;
  }

 private:
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;
  int64_t offset_ = 0;
};

std::vector<int64_t> RowMajorStrides(const Shape& shape);

// All elements of `shape`, in order.
StridedIndex DenseIndex(const Shape& shape);

// `from` as if it had shape `to`, to which it can be broadcast.
StridedIndex BroadcastIndex(const Shape& from, const Shape& to);

// A tensor of shape `shape` seen as results of a reduction, and what goes into
// each: element kept(i) + reduced(j) is the j-th of result i.
struct ReductionIndex {
  ReductionIndex(const Shape& shape, absl::Span<const int64_t> axes);

  StridedIndex kept;
  StridedIndex reduced;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_REFERENCE_STRIDED_INDEX_H_
