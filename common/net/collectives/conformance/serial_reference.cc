#include "common/net/collectives/conformance/serial_reference.h"

#include <algorithm>
#include <type_traits>

#include "common/core/base/random.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

// The value of one element; exact in every dtype.
int64_t ElementOf(ReduceOp op, int64_t index, int rank) {
  if (op == ReduceOp::kProd) {
    // At most four of sixteen ranks contribute a factor of 2.
    if ((rank + index) % 4 == 0) return 2;
    return (rank + index) % 3 == 0 ? -1 : 1;
  }
  return (7 * rank + 3 * index + index / 11) % 13 - 2;
}

int64_t Combine(ReduceOp op, int64_t a, int64_t b) {
  switch (op) {
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return a + b;
  }
  return 0;
}

template <typename T>
T FromFloat(float value) {
  return static_cast<T>(value);
}

template <typename T>
T Quotient(int64_t sum, int divisor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(sum / divisor);
  } else if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(sum) / divisor;
  } else {
    return T(static_cast<float>(sum) / static_cast<float>(divisor));
  }
}

template <typename Make>
Tensor MakeTensor(DType dtype, int64_t element_count, Make make) {
  Tensor tensor(dtype, Shape({element_count}));
  VisitNumber(dtype, [&]<typename T>() {
    absl::Span<T> values = tensor.mutable_flat<T>();
    for (int64_t i = 0; i < element_count; ++i) {
      values[i] = make.template operator()<T>(i);
    }
  });
  return tensor;
}

}  // namespace

Tensor RankValues(ReduceOp op, DType dtype, int64_t element_count, int rank) {
  return MakeTensor(dtype, element_count, [&]<typename T>(int64_t i) {
    return FromFloat<T>(static_cast<float>(ElementOf(op, i, rank)));
  });
}

Tensor ReducedValues(ReduceOp op, DType dtype, int64_t element_count,
                     int size) {
  return MakeTensor(dtype, element_count, [&]<typename T>(int64_t i) {
    int64_t value = ElementOf(op, i, 0);
    for (int rank = 1; rank < size; ++rank) {
      value = Combine(op, value, ElementOf(op, i, rank));
    }
    return Quotient<T>(value, op == ReduceOp::kMean ? size : 1);
  });
}

Tensor RoughValues(DType dtype, int64_t element_count, int rank) {
  return MakeTensor(dtype, element_count, [&]<typename T>(int64_t i) {
    return FromFloat<T>(2 * UnitFloat(Philox(rank, i)[0]) - 1);
  });
}

Tensor RankPattern(DType dtype, int64_t element_count, int rank) {
  return MakeTensor(dtype, element_count, [&]<typename T>(int64_t i) {
    const int value = static_cast<int>((31 * rank + i + i / 7) % 113);
    if constexpr (std::is_same_v<T, bool>) return value % 3 == 0;
    return FromFloat<T>(static_cast<float>(value));
  });
}

std::vector<DType> ReducibleDTypes() {
  return {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
          DType::kBfloat16, DType::kInt32,   DType::kInt64};
}

std::vector<ReduceOp> AllReduceOps() {
  return {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
          ReduceOp::kProd};
}

}  // namespace muster
