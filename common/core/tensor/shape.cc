#include "common/core/tensor/shape.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims,
                                    bool allow_unknown) {
  if (dims.size() > kRankMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a shape has at most ", kRankMax, " dimensions, not ", dims.size()));
  }
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim == kUnknown && allow_unknown) continue;
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a dimension cannot be ", dim));
    }
    // Zero extents do not relax the bound on the others: a hostile extent must
    // be rejected even if another extent is 0.
    if (dim > 0 && product > std::numeric_limits<int64_t>::max() / dim) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", Shape(dims).ToString(), " has more than 2^63 elements"));
    }
    product *= std::max<int64_t>(dim, 1);
  }
  return Shape(dims);
}

bool Shape::IsFullyKnown() const {
  return std::none_of(dims_.begin(), dims_.end(),
                      [](int64_t dim) { return dim < 0; });
}

int64_t Shape::element_count() const { return ElementCountInRange(0, rank()); }

int64_t Shape::ElementCountInRange(int begin, int end) const {
  int64_t count = 1;
  for (int axis = begin; axis < end; ++axis) {
    MUSTER_CHECK(dims_[axis] >= 0);
    count *= dims_[axis];
  }
  return count;
}

bool Shape::IsCompatibleWith(const Shape& other) const {
  if (rank() != other.rank()) return false;
  for (int axis = 0; axis < rank(); ++axis) {
    if (dims_[axis] >= 0 && other.dims_[axis] >= 0 &&
        dims_[axis] != other.dims_[axis]) {
      return false;
    }
  }
  return true;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int axis = 0; axis < rank(); ++axis) {
    if (axis > 0) text += ',';
    if (dims_[axis] < 0) {
      text += '?';
    } else {
      absl::StrAppend(&text, dims_[axis]);
    }
  }
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ToString();
}

absl::StatusOr<int> ResolveAxis(int64_t axis, int rank,
                                absl::string_view what) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": axis ", axis, " is out of range for rank ", rank,
        rank == 0 ? "" : absl::StrCat(" (", -rank, " to ", rank - 1, ")")));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank());
    const int axis_b = axis - (rank - b.rank());
    const int64_t dim_a = axis_a < 0 ? 1 : a.dim(axis_a);
    const int64_t dim_b = axis_b < 0 ? 1 : b.dim(axis_b);
    if (dim_a == dim_b || dim_b == 1) {
      result.AddDim(dim_a);
    } else if (dim_a == 1 || dim_a == Shape::kUnknown) {
      result.AddDim(dim_b);
    } else if (dim_b == Shape::kUnknown) {
      result.AddDim(dim_a);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                       " cannot be broadcast together"));
    }
  }
  return result;
}

}  // namespace muster
