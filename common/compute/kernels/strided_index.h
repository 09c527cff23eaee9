#ifndef COMMON_COMPUTE_KERNELS_STRIDED_INDEX_H_
#define COMMON_COMPUTE_KERNELS_STRIDED_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {

// Maps the elements of a view to their offsets in the memory of another tensor.
// A view may be broadcast, transposed, sliced or reduced.
class StridedIndex {
 public:
  StridedIndex() = default;
  StridedIndex(absl::Span<const int64_t> extents,
               absl::Span<const int64_t> strides, int64_t offset = 0)
      : extents_(extents.begin(), extents.end()),
        strides_(strides.begin(), strides.end()),
        offset_(offset) {}

  // Returns the offset of the element at row-major `position`.
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

  absl::Span<const int64_t> extents() const { return extents_; }
  absl::Span<const int64_t> strides() const { return strides_; }
  int64_t offset() const { return offset_; }

 private:
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;
  int64_t offset_ = 0;
};

std::vector<int64_t> RowMajorStrides(const Shape& shape);

// Returns the index of all elements of `shape` in order.
StridedIndex DenseIndex(const Shape& shape);

// Returns the index of `from` broadcast to shape `to`.
StridedIndex BroadcastIndex(const Shape& from, const Shape& to);

// Returns the index of a box of shape `part` at position `begin` in a tensor of
// shape `whole`.
StridedIndex BoxIndex(const Shape& part, const Shape& whole,
                      absl::Span<const int64_t> begin);

// Returns the axes of `shape` along which `like` is broadcast to it.
std::vector<int64_t> BroadcastAxes(const Shape& like, const Shape& shape);

// The index of a reduction of a tensor of shape `shape`: result i is computed
// from the elements kept(i) + reduced(j) for all j.
struct ReductionIndex {
  ReductionIndex(const Shape& shape, absl::Span<const int64_t> axes);

  StridedIndex kept;
  StridedIndex reduced;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_STRIDED_INDEX_H_
