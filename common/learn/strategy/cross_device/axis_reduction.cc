#include "common/learn/strategy/cross_device/axis_reduction.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/net/collectives/reduce_kernels.h"

namespace muster {
namespace {

template <typename T>
inline constexpr bool kIs16Bit =
    std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Integers wrap around, as in collectives.
template <typename T>
auto ToSum(T element) {
  if constexpr (kIs16Bit<T>) {
    return static_cast<float>(element);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(element);
  } else {
    return element;
  }
}

// Sums `in`, [outer, extent, inner], over the middle axis into `out`, [outer,
// inner].
template <typename T>
void SumMiddle(const T* in, int64_t outer, int64_t extent, int64_t inner,
               T* out) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      decltype(ToSum(T())) sum = 0;
      for (int64_t k = 0; k < extent; ++k) {
        sum += ToSum(in[(o * extent + k) * inner + i]);
      }
      out[o * inner + i] = T(sum);
    }
  }
}

Tensor SumAxis(const Tensor& value, int axis) {
  const Shape& shape = value.shape();
  Shape rest = shape;
  rest.RemoveDim(axis);
  Tensor sums(value.dtype(), rest);
  VisitNumber(value.dtype(), [&]<typename T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      SumMiddle(value.flat<T>().data(), shape.ElementCountInRange(0, axis),
                shape.dim(axis),
                shape.ElementCountInRange(axis + 1, shape.rank()),
                sums.mutable_flat<T>().data());
    }
  });
  return sums;
}

// Returns distinct axes in descending order, so that removing one does not
// change the indices of the rest.
absl::StatusOr<std::vector<int>> Resolve(absl::Span<const int64_t> axes,
                                         int rank) {
  std::vector<int> resolved;
  for (const int64_t axis : axes) {
    ASSIGN_OR_RETURN(resolved.emplace_back(),
                     ResolveAxis(axis, rank, "Reduce"));
  }
  std::sort(resolved.rbegin(), resolved.rend());
  const auto twice = std::adjacent_find(resolved.begin(), resolved.end());
  if (twice == resolved.end()) return resolved;
  return absl::InvalidArgumentError(
      absl::StrCat("Reduce: axis ", *twice, " is given twice"));
}

}  // namespace

absl::StatusOr<Tensor> SumAlong(const Tensor& value,
                                absl::Span<const int64_t> axes) {
  RETURN_IF_ERROR(CheckReducible(value.dtype()));
  ASSIGN_OR_RETURN(const std::vector<int> resolved,
                   Resolve(axes, value.shape().rank()));
  Tensor sums = value;
  for (const int axis : resolved) sums = SumAxis(sums, axis);
  return sums;
}

absl::StatusOr<int64_t> CountAlong(const Shape& shape,
                                   absl::Span<const int64_t> axes) {
  ASSIGN_OR_RETURN(const std::vector<int> resolved,
                   Resolve(axes, shape.rank()));
  int64_t count = 1;
  for (const int axis : resolved) count *= shape.dim(axis);
  return count;
}

void DivideByCount(Tensor* sums, int64_t count) {
  VisitNumber(sums->dtype(), [&]<typename T>() {
    for (T& element : sums->mutable_flat<T>()) {
      if constexpr (kIs16Bit<T>) {
        element = T(static_cast<float>(element) / static_cast<float>(count));
      } else if constexpr (std::is_floating_point_v<T>) {
        element /= static_cast<T>(count);
      } else if constexpr (!std::is_same_v<T, bool>) {
        element = count == 0 ? T{0} : static_cast<T>(element / count);
      }
    }
  });
}

Tensor ConcatenateAlong(absl::Span<const Tensor> parts, int axis) {
  Shape shape = parts[0].shape();
  int64_t extent = 0;
  for (const Tensor& part : parts) extent += part.shape().dim(axis);
  shape.set_dim(axis, extent);
  Tensor whole(parts[0].dtype(), shape);
  const int64_t outer = shape.ElementCountInRange(0, axis);
  const size_t inner_bytes =
      shape.ElementCountInRange(axis + 1, shape.rank()) * SizeOf(whole.dtype());
  uint8_t* to = whole.mutable_raw_data();
  for (int64_t o = 0; o < outer; ++o) {
    for (const Tensor& part : parts) {
      const size_t size_bytes = part.shape().dim(axis) * inner_bytes;
      if (size_bytes == 0) continue;
      std::memcpy(to, part.raw_data() + o * size_bytes, size_bytes);
      to += size_bytes;
    }
  }
  return whole;
}

}  // namespace muster
