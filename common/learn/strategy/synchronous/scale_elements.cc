#include "common/learn/strategy/synchronous/scale_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "common/core/base/check.h"
#include "common/core/base/multiversion.h"

namespace muster {
namespace {

template <typename T>
void Scale(double factor, int64_t count, T* elements) {
  if constexpr (std::is_same_v<T, bool>) {
    return;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t divisor = std::max<int64_t>(1, std::llround(1 / factor));
    for (int64_t i = 0; i < count; ++i) {
      elements[i] = static_cast<T>(static_cast<int64_t>(elements[i]) / divisor);
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    const T typed_factor = static_cast<T>(factor);
    for (int64_t i = 0; i < count; ++i) elements[i] *= typed_factor;
  } else {
    const float typed_factor = static_cast<float>(factor);
    for (int64_t i = 0; i < count; ++i) {
      elements[i] = T(static_cast<float>(elements[i]) * typed_factor);
    }
  }
}

MUSTER_MULTIVERSION void MultiplyPackedFloats(const float* __restrict from,
                                              float factor, int64_t count,
                                              float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

}  // namespace

void ScaleElements(DType dtype, double factor, int64_t count, void* elements) {
  if (factor == 1) return;
  VisitNumber(dtype, [&]<typename T>() {
    Scale(factor, count, static_cast<T*>(elements));
  });
}

void CopyScaled(DType dtype, const void* from, double factor, int64_t count,
                void* to) {
  MUSTER_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64);
  if (count == 0) return;
  if (factor == 0) {
    std::memset(to, 0, count * SizeOf(dtype));
  } else if (factor == 1) {
    std::memcpy(to, from, count * SizeOf(dtype));
  } else if (dtype == DType::kFloat32) {
    MultiplyPackedFloats(static_cast<const float*>(from),
                         static_cast<float>(factor), count,
                         static_cast<float*>(to));
  } else {
    const double* const from_doubles = static_cast<const double*>(from);
    double* const to_doubles = static_cast<double*>(to);
    for (int64_t i = 0; i < count; ++i) {
      to_doubles[i] = from_doubles[i] * factor;
    }
  }
}

}  // namespace muster
