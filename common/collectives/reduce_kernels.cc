#include "common/collectives/reduce_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/multiversion.h"
#include "common/tensor/float16.h"

// Vectors never cross a call that is not inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace muster {
namespace {

#define MUSTER_INLINE ABSL_ATTRIBUTE_ALWAYS_INLINE static inline

// Vectors of 64 bytes whatever the machine has: the compiler cuts them.
template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(64)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;
typedef uint16_t HalfWords __attribute__((vector_size(32)));

// How elements lie in memory and what they are computed in. Vectors go by
// reference: by value they would need the same features in caller and callee.
template <typename T>
struct Elements {
  using Value = T;
  MUSTER_INLINE void Load(const void* from, Vector<T>& to) {
    std::memcpy(&to, from, sizeof(to));
  }
  MUSTER_INLINE void Store(const Vector<T>& from, void* to) {
    std::memcpy(to, &from, sizeof(from));
  }
};

MUSTER_INLINE void LoadHalfWords(const void* from, Vector<uint32_t>& to) {
  HalfWords bits;
  std::memcpy(&bits, from, sizeof(bits));
  to = __builtin_convertvector(bits, Vector<uint32_t>);
}
MUSTER_INLINE void StoreHalfWords(const Vector<uint32_t>& from, void* to) {
  const HalfWords bits = __builtin_convertvector(from, HalfWords);
  std::memcpy(to, &bits, sizeof(bits));
}

// The conversions of common/tensor/float16.h, 16 at a time.
template <>
struct Elements<bfloat16> {
  using Value = float;
  MUSTER_INLINE void Load(const void* from, Vector<float>& to) {
    Vector<uint32_t> bits;
    LoadHalfWords(from, bits);
    to = (Vector<float>)(bits << 16);
  }
  MUSTER_INLINE void Store(const Vector<float>& from, void* to) {
    const Vector<uint32_t> wide = (Vector<uint32_t>)from;
    const Vector<uint32_t> rounded =
        (wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16;
    const Vector<uint32_t> nan = (wide >> 16) | 0x40u;
    StoreHalfWords(from == from ? rounded : nan, to);
  }
};

template <>
struct Elements<float16> {
  using Value = float;
  MUSTER_INLINE void Load(const void* from, Vector<float>& to) {
    Vector<uint32_t> bits;
    LoadHalfWords(from, bits);
    const Vector<uint32_t> sign = (bits & 0x8000u) << 16;
    const Vector<uint32_t> exponent = (bits >> 10) & 0x1fu;
    const Vector<uint32_t> mantissa = bits & 0x3ffu;
    const Vector<uint32_t> small =
        (Vector<uint32_t>)(__builtin_convertvector((Vector<int32_t>)mantissa,
                                                   Vector<float>) *
                           0x1.0p-24f);
    const Vector<uint32_t> bias = exponent == 0x1fu
                                      ? exponent - exponent + (255u - 31u)
                                      : exponent - exponent + 112u;
    const Vector<uint32_t> normal = (exponent + bias) << 23 | mantissa << 13;
    to = (Vector<float>)((exponent == 0u ? small : normal) | sign);
  }
  MUSTER_INLINE void Store(const Vector<float>& from, void* to) {
    const Vector<uint32_t> wide = (Vector<uint32_t>)from;
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
    StoreHalfWords(bits | sign, to);
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

// a != a holds for NaNs; b's NaN is taken because it is not greater or less.
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

template <typename T>
MUSTER_INLINE void DivideVector(int divisor, Vector<T>& a) {
  if constexpr (std::is_floating_point_v<T>) {
    // The reciprocal of a power of two is exact, and multiplying is faster.
    if ((divisor & (divisor - 1)) == 0) {
      a *= T{1} / static_cast<T>(divisor);
    } else {
      a /= static_cast<T>(divisor);
    }
  } else {
    a /= static_cast<T>(divisor);
  }
}

// kVectors at `byte_offset` of all arrays. The counts are constants where the
// caller knows them.
template <typename T, typename Op, int kVectors>
MUSTER_INLINE void ReduceVectors(const void* const* inputs, int input_count,
                                 void* const* outputs, int output_count,
                                 int divisor, int64_t byte_offset) {
  using Value = typename Elements<T>::Value;
  constexpr int64_t kStride = sizeof(T) * (64 / sizeof(Value));
  Vector<Value> sums[kVectors];
  const uint8_t* first = static_cast<const uint8_t*>(inputs[0]) + byte_offset;
  for (int v = 0; v < kVectors; ++v) {
    Elements<T>::Load(first + v * kStride, sums[v]);
  }
  for (int n = 1; n < input_count; ++n) {
    const uint8_t* next = static_cast<const uint8_t*>(inputs[n]) + byte_offset;
    for (int v = 0; v < kVectors; ++v) {
      Vector<Value> value;
      Elements<T>::Load(next + v * kStride, value);
      Op::template Combine<Value>(sums[v], value);
    }
  }
  if (divisor != 1) {
    for (int v = 0; v < kVectors; ++v) DivideVector<Value>(divisor, sums[v]);
  }
  for (int n = 0; n < output_count; ++n) {
    uint8_t* out = static_cast<uint8_t*>(outputs[n]) + byte_offset;
    for (int v = 0; v < kVectors; ++v) {
      Elements<T>::Store(sums[v], out + v * kStride);
    }
  }
}

// The elements that fill no vector, in copies that do.
template <typename T, typename Op>
MUSTER_INLINE void ReduceTail(const Arrays& arrays, int64_t begin) {
  using Value = typename Elements<T>::Value;
  constexpr int kLanes = 64 / sizeof(Value);
  const size_t bytes = (arrays.element_count - begin) * sizeof(T);
  const int64_t byte_offset = begin * sizeof(T);
  T padded[kLanes] = {};
  Vector<Value> sum;
  for (int n = 0; n < arrays.input_count; ++n) {
    std::memcpy(padded,
                static_cast<const uint8_t*>(arrays.inputs[n]) + byte_offset,
                bytes);
    if (n == 0) {
      Elements<T>::Load(padded, sum);
    } else {
      Vector<Value> value;
      Elements<T>::Load(padded, value);
      Op::template Combine<Value>(sum, value);
    }
  }
  if (arrays.divisor != 1) DivideVector<Value>(arrays.divisor, sum);
  Elements<T>::Store(sum, padded);
  for (int n = 0; n < arrays.output_count; ++n) {
    std::memcpy(static_cast<uint8_t*>(arrays.outputs[n]) + byte_offset, padded,
                bytes);
  }
}

// kInputs and kOutputs are 0 where only `arrays` knows.
template <typename T, typename Op, int kInputs, int kOutputs>
MUSTER_INLINE void ReduceAll(const Arrays& arrays) {
  constexpr int kLanes = 64 / sizeof(typename Elements<T>::Value);
  constexpr int kVectors = 4;
  const int input_count = kInputs != 0 ? kInputs : arrays.input_count;
  const int output_count = kOutputs != 0 ? kOutputs : arrays.output_count;
  const void* known_inputs[kInputs + 1];
  void* known_outputs[kOutputs + 1];
  for (int n = 0; n < kInputs; ++n) known_inputs[n] = arrays.inputs[n];
  for (int n = 0; n < kOutputs; ++n) known_outputs[n] = arrays.outputs[n];
  const void* const* inputs = kInputs != 0 ? known_inputs : arrays.inputs;
  void* const* outputs = kOutputs != 0 ? known_outputs : arrays.outputs;

  int64_t i = 0;
  for (; i + kVectors * kLanes <= arrays.element_count;
       i += kVectors * kLanes) {
    ReduceVectors<T, Op, kVectors>(inputs, input_count, outputs, output_count,
                                   arrays.divisor, i * sizeof(T));
  }
  for (; i + kLanes <= arrays.element_count; i += kLanes) {
    ReduceVectors<T, Op, 1>(inputs, input_count, outputs, output_count,
                            arrays.divisor, i * sizeof(T));
  }
  if (i < arrays.element_count) ReduceTail<T, Op>(arrays, i);
}

template <typename T, typename Op>
MUSTER_INLINE void ReduceArrays(const Arrays& arrays) {
  if (arrays.input_count == 2 && arrays.output_count == 2) {
    ReduceAll<T, Op, 2, 2>(arrays);
  } else if (arrays.input_count == 2 && arrays.output_count == 1) {
    ReduceAll<T, Op, 2, 1>(arrays);
  } else if (arrays.input_count == 4 && arrays.output_count == 4) {
    ReduceAll<T, Op, 4, 4>(arrays);
  } else {
    ReduceAll<T, Op, 0, 0>(arrays);
  }
}

#define MUSTER_REDUCTIONS(Name, T)                          \
  MUSTER_MULTIVERSION void Sum##Name(const Arrays& a) {     \
    ReduceArrays<T, Sum>(a);                                \
  }                                                         \
  MUSTER_MULTIVERSION void Product##Name(const Arrays& a) { \
    ReduceArrays<T, Product>(a);                            \
  }                                                         \
  MUSTER_MULTIVERSION void Minimum##Name(const Arrays& a) { \
    ReduceArrays<T, Minimum>(a);                            \
  }                                                         \
  MUSTER_MULTIVERSION void Maximum##Name(const Arrays& a) { \
    ReduceArrays<T, Maximum>(a);                            \
  }                                                         \
  void Reduce##Name(ReduceOp op, const Arrays& a) {         \
    switch (op) {                                           \
      case ReduceOp::kSum:                                  \
      case ReduceOp::kMean:                                 \
        return Sum##Name(a);                                \
      case ReduceOp::kMin:                                  \
        return Minimum##Name(a);                            \
      case ReduceOp::kMax:                                  \
        return Maximum##Name(a);                            \
      case ReduceOp::kProd:                                 \
        return Product##Name(a);                            \
    }                                                       \
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
