#ifndef COMMON_CORE_TENSOR_SHAPE_H_
#define COMMON_CORE_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"

namespace muster {

// The extents of a tensor, outermost first. The rank is always known; an extent
// may be kUnknown until the first run. A tensor with data has no unknown
// extent.
class Shape {
 public:
  static constexpr int64_t kUnknown = -1;
  static constexpr int kRankMax = 8;

  Shape() = default;  // A scalar.
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {}

  // Checks dimensions that come from outside the process.
  //   kInvalidArgument  more than kRankMax dimensions, one below -1 (or below
  //                     0 when `allow_unknown` is false), or a product that
  //                     does not fit in 63 bits
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> dims,
                                      bool allow_unknown);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const {
    MUSTER_CHECK(axis >= 0 && axis < rank());
    return dims_[axis];
  }
  void set_dim(int axis, int64_t extent) { dims_[axis] = extent; }
  void AddDim(int64_t extent) { dims_.push_back(extent); }
  void InsertDim(int axis, int64_t extent) {
    dims_.insert(dims_.begin() + axis, extent);
  }
  void RemoveDim(int axis) { dims_.erase(dims_.begin() + axis); }
  absl::Span<const int64_t> dims() const { return dims_; }

  // True if no extent is kUnknown.
  bool IsFullyKnown() const;

  // The product of the extents, 1 for a scalar. Needs IsFullyKnown().
  int64_t element_count() const;

  // Returns the product of the extents in [begin, end), which must be known.
  int64_t ElementCountInRange(int begin, int end) const;

  // True if the ranks are equal, and extents are equal or unknown on either
  // side.
  bool IsCompatibleWith(const Shape& other) const;

  // "[2,3]", "[?,784]", "[]".
  std::string ToString() const;

  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return !(*this == other); }

  template <typename H>
  friend H AbslHashValue(H state, const Shape& shape) {
    return H::combine(std::move(state), shape.dims_);
  }

 private:
  absl::InlinedVector<int64_t, 4> dims_;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Resolves a negative axis, which counts from the back as in NumPy. `what`
// names the operation in the error.
//   kInvalidArgument  not in [-rank, rank)
absl::StatusOr<int> ResolveAxis(int64_t axis, int rank, absl::string_view what);

// Broadcasts two shapes as NumPy does. An unknown extent becomes the other one
// if that is known and greater than 1, and stays unknown otherwise.
//   kInvalidArgument  extents differ and neither is 1
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_SHAPE_H_
