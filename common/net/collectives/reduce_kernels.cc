#include "common/net/collectives/reduce_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/multiversion.h"
#include "common/core/tensor/float16.h"

// The warning is about passing vectors to functions; here all such calls are
// inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace muster {
namespace {

#define MUSTER_INLINE ABSL_ATTRIBUTE_ALWAYS_INLINE static inline

// Vectors have 64 bytes on every machine. The compiler splits them if its
// registers are smaller.
template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(64)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;
typedef uint16_t HalfWords __attribute__((vector_size(32)));

// A Unit is combined in one operation. It is kBytes of elements in memory, and
// one or two vectors of the type in which they are computed. Vectors are passed
// by reference: passing them by value requires the same CPU features in caller
// and callee.
template <typename T>
struct Elements {
  using Value = T;
  static constexpr int kBytes = 64;
  struct Unit {
    Vector<T> parts[1];
  };
  MUSTER_INLINE void Load(const void* from, Unit& to) {
    std::memcpy(&to.parts[0], from, kBytes);
  }
  MUSTER_INLINE void Store(const Unit& from, void* to) {
    std::memcpy(to, &from.parts[0], kBytes);
  }
};

// The conversions of common/core/tensor/float16.h, many at a time.

// Elements at even indices are the lower halves of 32-bit words; elements at
// odd indices are the upper halves, which are floats once the lower 16 bits are
// cleared. Splitting and joining such pairs is faster than widening and
// narrowing.
template <>
struct Elements<bfloat16> {
  using Value = float;
  static constexpr int kBytes = 64;
  struct Unit {
    Vector<float> parts[2];
  };
  MUSTER_INLINE void Load(const void* from, Unit& to) {
    Vector<uint32_t> pairs;
    std::memcpy(&pairs, from, kBytes);
    to.parts[0] = (Vector<float>)(pairs << 16);
    to.parts[1] = (Vector<float>)(pairs & 0xffff0000u);
  }
  // Rounds into the upper half of each word; the caller ignores the lower half.
  MUSTER_INLINE void Round(const Vector<float>& from, Vector<uint32_t>& to) {
    const Vector<uint32_t> wide = (Vector<uint32_t>)from;
    const Vector<uint32_t> rounded = wide + 0x7fffu + ((wide >> 16) & 1u);
    to = from == from ? rounded : (wide | 0x400000u);
  }
  MUSTER_INLINE void Store(const Unit& from, void* to) {
    Vector<uint32_t> even;
    Vector<uint32_t> odd;
    Round(from.parts[0], even);
    Round(from.parts[1], odd);
    const Vector<uint32_t> pairs = (even >> 16) | (odd & 0xffff0000u);
    std::memcpy(to, &pairs, kBytes);
  }
};

template <>
struct Elements<float16> {
  using Value = float;
  static constexpr int kBytes = 32;
  struct Unit {
    Vector<float> parts[1];
  };
  MUSTER_INLINE void Load(const void* from, Unit& to) {
    HalfWords halves;
    std::memcpy(&halves, from, kBytes);
    const Vector<uint32_t> bits =
        __builtin_convertvector(halves, Vector<uint32_t>);
    const Vector<uint32_t> sign = (bits & 0x8000u) << 16;
    const Vector<uint32_t> exponent = (bits >> 10) & 0x1fu;
    const Vector<uint32_t> mantissa = bits & 0x3ffu;
    const Vector<uint32_t> zero = bits - bits;
    const Vector<uint32_t> small =
        (Vector<uint32_t>)(__builtin_convertvector((Vector<int32_t>)mantissa,
                                                   Vector<float>) *
                           0x1.0p-24f);
    const Vector<uint32_t> bias =
        exponent == 0x1fu ? zero + (255u - 31u) : zero + 112u;
    const Vector<uint32_t> normal = (exponent + bias) << 23 | mantissa << 13;
    to.parts[0] = (Vector<float>)((exponent == 0u ? small : normal) | sign);
  }
  MUSTER_INLINE void Store(const Unit& from, void* to) {
    const Vector<uint32_t> wide = (Vector<uint32_t>)from.parts[0];
    const Vector<uint32_t> sign = (wide >> 16) & 0x8000u;
    const Vector<uint32_t> magnitude = wide & 0x7fffffffu;
    // Adding 0.5 moves the 10 bits that survive to the end of the mantissa and
    // lets the hardware round.
    const Vector<uint32_t> small =
        (Vector<uint32_t>)((Vector<float>)magnitude + 0.5f) - 0x3f000000u;
    const Vector<uint32_t> normal =
        (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    const Vector<uint32_t> zero = magnitude - magnitude;
    Vector<uint32_t> bits = magnitude < 0x38800000u ? small : normal;
    bits = magnitude >= 0x477ff000u ? zero + 0x7c00u : bits;
    bits = magnitude > 0x7f800000u ? zero + 0x7e00u : bits;
    const HalfWords halves = __builtin_convertvector(bits | sign, HalfWords);
    std::memcpy(to, &halves, kBytes);
  }
};

// Integers are added and multiplied as unsigned ones, which wrap around.
template <typename T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                std::common_type<T>>::type;

struct Sum {
  template <typename T>
  MUSTER_INLINE void Combine(Vector<T>& a, const Vector<T>& b) {
    using Operand = Vector<Wrapping<T>>;
    a = (Vector<T>)((Operand)a + (Operand)b);
  }
};

struct Product {
  template <typename T>
  MUSTER_INLINE void Combine(Vector<T>& a, const Vector<T>& b) {
    using Operand = Vector<Wrapping<T>>;
    a = (Vector<T>)((Operand)a * (Operand)b);
  }
};

// a != a holds for NaNs; a NaN in b is taken because comparisons with it are
// false.
struct Minimum {
  template <typename T>
  MUSTER_INLINE void Combine(Vector<T>& a, const Vector<T>& b) {
    a = ((a < b) | (a != a)) ? a : b;
  }
};

struct Maximum {
  template <typename T>
  MUSTER_INLINE void Combine(Vector<T>& a, const Vector<T>& b) {
    a = ((a > b) | (a != a)) ? a : b;
  }
};

struct Arrays {
  int64_t element_count;
  int input_count;
  int output_count;
  const void* const* inputs;
  void* const* outputs;
  int divisor;  // 1 for none.
};

template <typename T, typename Op>
MUSTER_INLINE void CombineUnits(typename Elements<T>::Unit& a,
                                const typename Elements<T>::Unit& b) {
  constexpr int kParts = sizeof(a.parts) / sizeof(a.parts[0]);
  for (int part = 0; part < kParts; ++part) {
    Op::template Combine<typename Elements<T>::Value>(a.parts[part],
                                                      b.parts[part]);
  }
}

template <typename T>
MUSTER_INLINE void DivideUnit(int divisor, typename Elements<T>::Unit& unit) {
  using Value = typename Elements<T>::Value;
  for (auto& part : unit.parts) {
    if constexpr (std::is_floating_point_v<Value>) {
      // The reciprocal of a power of two is exact, and multiplying is faster.
      if ((divisor & (divisor - 1)) == 0) {
        part *= Value{1} / static_cast<Value>(divisor);
      } else {
        part /= static_cast<Value>(divisor);
      }
    } else {
      part /= static_cast<Value>(divisor);
    }
  }
}

// Reduces kUnits units at `byte_offset` of all arrays. Callers pass constant
// counts if they can.
template <typename T, typename Op, int kUnits>
MUSTER_INLINE void ReduceUnits(const void* const* inputs, int input_count,
                               void* const* outputs, int output_count,
                               int divisor, int64_t byte_offset) {
  using Unit = typename Elements<T>::Unit;
  constexpr int64_t kStride = Elements<T>::kBytes;
  Unit sums[kUnits];
  const uint8_t* first = static_cast<const uint8_t*>(inputs[0]) + byte_offset;
  for (int u = 0; u < kUnits; ++u) {
    Elements<T>::Load(first + u * kStride, sums[u]);
  }
  for (int n = 1; n < input_count; ++n) {
    const uint8_t* next = static_cast<const uint8_t*>(inputs[n]) + byte_offset;
    for (int u = 0; u < kUnits; ++u) {
      Unit values;
      Elements<T>::Load(next + u * kStride, values);
      CombineUnits<T, Op>(sums[u], values);
    }
  }
  if (divisor != 1) {
    for (int u = 0; u < kUnits; ++u) DivideUnit<T>(divisor, sums[u]);
  }
  for (int n = 0; n < output_count; ++n) {
    uint8_t* out = static_cast<uint8_t*>(outputs[n]) + byte_offset;
    for (int u = 0; u < kUnits; ++u) {
      Elements<T>::Store(sums[u], out + u * kStride);
    }
  }
}

// Reduces the last elements, which do not fill a unit, in padded copies.
template <typename T, typename Op>
MUSTER_INLINE void ReduceTail(const Arrays& arrays, int64_t begin) {
  using Unit = typename Elements<T>::Unit;
  const size_t bytes = (arrays.element_count - begin) * sizeof(T);
  const int64_t byte_offset = begin * sizeof(T);
  uint8_t padded[Elements<T>::kBytes] = {};
  Unit sum;
  for (int n = 0; n < arrays.input_count; ++n) {
    std::memcpy(padded,
                static_cast<const uint8_t*>(arrays.inputs[n]) + byte_offset,
                bytes);
    if (n == 0) {
      Elements<T>::Load(padded, sum);
    } else {
      Unit values;
      Elements<T>::Load(padded, values);
      CombineUnits<T, Op>(sum, values);
    }
  }
  if (arrays.divisor != 1) DivideUnit<T>(arrays.divisor, sum);
  Elements<T>::Store(sum, padded);
  for (int n = 0; n < arrays.output_count; ++n) {
    std::memcpy(static_cast<uint8_t*>(arrays.outputs[n]) + byte_offset, padded,
                bytes);
  }
}

// kInputs and kOutputs are 0 if the count is not a constant. It is then read
// from `arrays`.
template <typename T, typename Op, int kInputs, int kOutputs>
MUSTER_INLINE void ReduceAll(const Arrays& arrays) {
  constexpr int kVectors = 4;
  constexpr int kUnits =
      kVectors * sizeof(Vector<float>) / sizeof(typename Elements<T>::Unit);
  constexpr int64_t kElements = Elements<T>::kBytes / sizeof(T);
  const int input_count = kInputs != 0 ? kInputs : arrays.input_count;
  const int output_count = kOutputs != 0 ? kOutputs : arrays.output_count;
  const void* known_inputs[kInputs + 1];
  void* known_outputs[kOutputs + 1];
  for (int n = 0; n < kInputs; ++n) known_inputs[n] = arrays.inputs[n];
  for (int n = 0; n < kOutputs; ++n) known_outputs[n] = arrays.outputs[n];
  const void* const* inputs = kInputs != 0 ? known_inputs : arrays.inputs;
  void* const* outputs = kOutputs != 0 ? known_outputs : arrays.outputs;

  int64_t i = 0;
  for (; i + kUnits * kElements <= arrays.element_count;
       i += kUnits * kElements) {
    ReduceUnits<T, Op, kUnits>(inputs, input_count, outputs, output_count,
                               arrays.divisor, i * sizeof(T));
  }
  for (; i + kElements <= arrays.element_count; i += kElements) {
    ReduceUnits<T, Op, 1>(inputs, input_count, outputs, output_count,
                          arrays.divisor, i * sizeof(T));
  }
  if (i < arrays.element_count) ReduceTail<T, Op>(arrays, i);
}

// Gradients are summed, so only sums get specialized code for frequent counts.
template <typename T>
MUSTER_INLINE void SumArrays(const Arrays& arrays) {
  if (arrays.input_count == 2 && arrays.output_count == 2) {
    ReduceAll<T, Sum, 2, 2>(arrays);
  } else if (arrays.input_count == 2 && arrays.output_count == 1) {
    ReduceAll<T, Sum, 2, 1>(arrays);
  } else if (arrays.input_count == 4 && arrays.output_count == 4) {
    ReduceAll<T, Sum, 4, 4>(arrays);
  } else {
    ReduceAll<T, Sum, 0, 0>(arrays);
  }
}

#define MUSTER_REDUCTIONS(Name, T)                                         \
  MUSTER_MULTIVERSION void Sum##Name(const Arrays& a) { SumArrays<T>(a); } \
  MUSTER_MULTIVERSION void Product##Name(const Arrays& a) {                \
    ReduceAll<T, Product, 0, 0>(a);                                        \
  }                                                                        \
  MUSTER_MULTIVERSION void Minimum##Name(const Arrays& a) {                \
    ReduceAll<T, Minimum, 0, 0>(a);                                        \
  }                                                                        \
  MUSTER_MULTIVERSION void Maximum##Name(const Arrays& a) {                \
    ReduceAll<T, Maximum, 0, 0>(a);                                        \
  }                                                                        \
  void Reduce##Name(ReduceOp op, const Arrays& a) {                        \
    switch (op) {                                                          \
      case ReduceOp::kSum:                                                 \
      case ReduceOp::kMean:                                                \
        return Sum##Name(a);                                               \
      case ReduceOp::kMin:                                                 \
        return Minimum##Name(a);                                           \
      case ReduceOp::kMax:                                                 \
        return Maximum##Name(a);                                           \
      case ReduceOp::kProd:                                                \
        return Product##Name(a);                                           \
    }                                                                      \
  }

MUSTER_REDUCTIONS(ElementsOfFloat32, float)
MUSTER_REDUCTIONS(ElementsOfFloat64, double)
MUSTER_REDUCTIONS(ElementsOfFloat16, float16)
MUSTER_REDUCTIONS(ElementsOfBfloat16, bfloat16)
MUSTER_REDUCTIONS(ElementsOfInt32, int32_t)
MUSTER_REDUCTIONS(ElementsOfInt64, int64_t)

void ReduceAnyDType(ReduceOp op, DType dtype, const Arrays& arrays) {
  switch (dtype) {
    case DType::kFloat32:
      return ReduceElementsOfFloat32(op, arrays);
    case DType::kFloat64:
      return ReduceElementsOfFloat64(op, arrays);
    case DType::kFloat16:
      return ReduceElementsOfFloat16(op, arrays);
    case DType::kBfloat16:
      return ReduceElementsOfBfloat16(op, arrays);
    case DType::kInt32:
      return ReduceElementsOfInt32(op, arrays);
    case DType::kInt64:
      return ReduceElementsOfInt64(op, arrays);
    default:
      MUSTER_CHECK(false && "CheckReducible() comes first");
  }
}

}  // namespace

absl::Status CheckReducible(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kInt32:
    case DType::kInt64:
      return absl::OkStatus();
    default:
      return absl::UnimplementedError(absl::StrCat(
          DTypeName(dtype),
          " has no reduction; there are those of float32, float64, float16, "
          "bfloat16, int32 and int64"));
  }
}

void Reduce(ReduceOp op, DType dtype, int64_t element_count,
            absl::Span<const void* const> inputs,
            absl::Span<void* const> outputs) {
  MUSTER_CHECK(!inputs.empty());
  const int input_count = static_cast<int>(inputs.size());
  ReduceAnyDType(op, dtype,
                 {.element_count = element_count,
                  .input_count = input_count,
                  .output_count = static_cast<int>(outputs.size()),
                  .inputs = inputs.data(),
                  .outputs = outputs.data(),
                  .divisor = op == ReduceOp::kMean ? input_count : 1});
}

void Accumulate(ReduceOp op, DType dtype, int64_t element_count,
                const void* addend, void* accumulator) {
  const void* const inputs[] = {accumulator, addend};
  Reduce(op == ReduceOp::kMean ? ReduceOp::kSum : op, dtype, element_count,
         inputs, {&accumulator, 1});
}

void Divide(DType dtype, int64_t element_count, int divisor, void* data) {
  MUSTER_CHECK(divisor >= 1);
  const void* const input = data;
  ReduceAnyDType(ReduceOp::kSum, dtype,
                 {.element_count = element_count,
                  .input_count = 1,
                  .output_count = 1,
                  .inputs = &input,
                  .outputs = &data,
                  .divisor = divisor});
}

}  // namespace muster
