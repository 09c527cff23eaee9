#include "common/net/collectives/reduce_kernels.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kProd};

// The type in which elements of type T are computed.
template <typename T>
struct ComputedIn {
  using Type = T;
};
template <>
struct ComputedIn<float16> {
  using Type = float;
};
template <>
struct ComputedIn<bfloat16> {
  using Type = float;
};

template <typename V>
V CombineTwo(ReduceOp op, V a, V b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      if constexpr (std::is_integral_v<V>) {
        return static_cast<V>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
      }
      return a + b;
    case ReduceOp::kMin:
      return (a < b || a != a) ? a : b;
    case ReduceOp::kMax:
      return (a > b || a != a) ? a : b;
    case ReduceOp::kProd:
      if constexpr (std::is_integral_v<V>) {
        return static_cast<V>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
      }
      return a * b;
  }
  return a;
}

template <typename T>
std::vector<T> ReduceSlowly(ReduceOp op,
                            const std::vector<std::vector<T>>& inputs) {
  using V = typename ComputedIn<T>::Type;
  std::vector<T> result;
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    V value = static_cast<V>(inputs[0][i]);
    for (size_t n = 1; n < inputs.size(); ++n) {
      value = CombineTwo<V>(op, value, static_cast<V>(inputs[n][i]));
    }
    if (op == ReduceOp::kMean) value /= static_cast<V>(inputs.size());
    result.push_back(static_cast<T>(value));
  }
  return result;
}

template <typename T>
T RandomElement(RandomStream& random) {
  using V = typename ComputedIn<T>::Type;
  const uint64_t bits = random.Next64();
  if constexpr (std::is_integral_v<T>) return static_cast<T>(bits);
  switch (bits % 23) {
    case 0:
      return static_cast<T>(std::numeric_limits<V>::infinity());
    case 1:
      return static_cast<T>(V{0});
    case 2:
      return static_cast<T>(-V{0});
    case 3:  // Subnormal as a float16, or a small normal number.
      return static_cast<T>(static_cast<V>(UnitFloat(bits >> 32) * 0x1p-13f));
    case 4:  // Overflows float16 when a few are added.
      return static_cast<T>(static_cast<V>(UnitFloat(bits >> 32) * 65504.0f));
    default:
      return static_cast<T>(
          static_cast<V>(UnitFloat(bits >> 32) * 8.0f - 4.0f));
  }
}

template <typename T>
bool IsNan(T value) {
  using V = typename ComputedIn<T>::Type;
  return static_cast<V>(value) != static_cast<V>(value);
}

// Expects the same bits, except that any NaN equals any other.
template <typename T>
void ExpectSameBits(const std::vector<T>& actual,
                    const std::vector<T>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (IsNan(actual[i]) && IsNan(expected[i])) continue;
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0)
        << "element " << i << " of " << actual.size();
  }
}

template <typename T>
class ReduceKernelsTest : public testing::Test {
 protected:
  static std::vector<std::vector<T>> RandomInputs(int input_count,
                                                  int64_t element_count) {
    RandomStream random(FoldIn(input_count, element_count));
    std::vector<std::vector<T>> inputs(input_count);
    for (std::vector<T>& input : inputs) {
      for (int64_t i = 0; i < element_count; ++i) {
        input.push_back(RandomElement<T>(random));
      }
    }
    return inputs;
  }

  static std::vector<const void*> Pointers(
      const std::vector<std::vector<T>>& arrays) {
    std::vector<const void*> pointers;
    for (const std::vector<T>& array : arrays) pointers.push_back(array.data());
    return pointers;
  }
};

using DTypes =
    testing::Types<float, double, float16, bfloat16, int32_t, int64_t>;
TYPED_TEST_SUITE(ReduceKernelsTest, DTypes);

TYPED_TEST(ReduceKernelsTest, EveryOpAndLengthEqualsTheSlowLoop) {
  using T = TypeParam;
  for (const ReduceOp op : kOps) {
    for (const int input_count : {1, 2, 3, 4, 5, 16}) {
      for (const int64_t count : {0, 1, 7, 15, 16, 17, 63, 64, 65, 200, 517}) {
        SCOPED_TRACE(testing::Message()
                     << ReduceOpName(op) << " of " << input_count);
        const auto inputs = this->RandomInputs(input_count, count);
        std::vector<T> output(count);
        void* const outputs[] = {output.data()};
        Reduce(op, DTypeOf<T>(), count, this->Pointers(inputs), outputs);
        ExpectSameBits(output, ReduceSlowly(op, inputs));
      }
    }
  }
}

TYPED_TEST(ReduceKernelsTest, EveryInputMayBecomeTheResult) {
  using T = TypeParam;
  for (const int input_count : {1, 2, 3, 4, 7}) {
    auto arrays = this->RandomInputs(input_count, 333);
    const std::vector<T> expected = ReduceSlowly(ReduceOp::kSum, arrays);
    std::vector<void*> outputs;
    for (auto& array : arrays) outputs.push_back(array.data());
    Reduce(ReduceOp::kSum, DTypeOf<T>(), 333, this->Pointers(arrays), outputs);
    for (const auto& array : arrays) ExpectSameBits(array, expected);
  }
}

TYPED_TEST(ReduceKernelsTest, ResultsDoNotDependOnSplitsOrAlignment) {
  using T = TypeParam;
  constexpr int64_t kCount = 259;
  const auto inputs = this->RandomInputs(3, kCount);
  const std::vector<T> expected = ReduceSlowly(ReduceOp::kMean, inputs);
  for (const int64_t cut : {1, 5, 64, 100, 258}) {
    std::vector<T> output(kCount);
    for (const auto& [begin, end] :
         {std::pair<int64_t, int64_t>{0, cut}, {cut, kCount}}) {
      std::vector<const void*> parts;
      for (const auto& input : inputs) parts.push_back(input.data() + begin);
      void* const outputs[] = {output.data() + begin};
      Reduce(ReduceOp::kMean, DTypeOf<T>(), end - begin, parts, outputs);
    }
    ExpectSameBits(output, expected);
  }
}

TYPED_TEST(ReduceKernelsTest, NothingBesideTheElementsIsWritten) {
  using T = TypeParam;
  for (const int64_t count : {1, 13, 77}) {
    const auto inputs = this->RandomInputs(2, count);
    std::vector<uint8_t> memory(count * sizeof(T) + 2, 0xab);
    void* const outputs[] = {memory.data() + 1};  // Also unaligned.
    Reduce(ReduceOp::kMax, DTypeOf<T>(), count, this->Pointers(inputs),
           outputs);
    EXPECT_EQ(memory.front(), 0xab);
    EXPECT_EQ(memory.back(), 0xab);
    std::vector<T> output(count);
    std::memcpy(output.data(), memory.data() + 1, count * sizeof(T));
    ExpectSameBits(output, ReduceSlowly(ReduceOp::kMax, inputs));
  }
}

TYPED_TEST(ReduceKernelsTest, AccumulateAddsAndDivideEndsAMean) {
  using T = TypeParam;
  using V = typename ComputedIn<T>::Type;
  constexpr int64_t kCount = 100;
  const auto inputs = this->RandomInputs(2, kCount);
  std::vector<T> accumulator = inputs[0];
  Accumulate(ReduceOp::kMean, DTypeOf<T>(), kCount, inputs[1].data(),
             accumulator.data());
  ExpectSameBits(accumulator, ReduceSlowly(ReduceOp::kSum, inputs));
  std::vector<T> expected;
  for (const T sum : accumulator) {
    expected.push_back(static_cast<T>(static_cast<V>(sum) / V{7}));
  }
  Divide(DTypeOf<T>(), kCount, 7, accumulator.data());
  ExpectSameBits(accumulator, expected);
}

TEST(ReduceHalfFloatsTest, SumsAreRoundedOnce) {
  // In bfloat16, 256 + 1 is 256. Only a sum in a wider type gives 260.
  const std::vector<std::vector<bfloat16>> inputs = {
      {bfloat16(256.0f)}, {bfloat16(1.0f)}, {bfloat16(1.0f)},
      {bfloat16(1.0f)},   {bfloat16(1.0f)},
  };
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  bfloat16 sum;
  void* const outputs[] = {&sum};
  Reduce(ReduceOp::kSum, DType::kBfloat16, 1, pointers, outputs);
  EXPECT_EQ(static_cast<float>(sum), 260.0f);
}

TEST(ReduceNanTest, OneNanIsEnough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : kOps) {
    const float a[] = {nan, 1.0f, 2.0f};
    const float b[] = {1.0f, nan, 2.0f};
    const void* const inputs[] = {a, b};
    float output[3];
    void* const outputs[] = {output};
    Reduce(op, DType::kFloat32, 3, inputs, outputs);
    EXPECT_TRUE(std::isnan(output[0])) << ReduceOpName(op);
    EXPECT_TRUE(std::isnan(output[1])) << ReduceOpName(op);
    EXPECT_FALSE(std::isnan(output[2])) << ReduceOpName(op);
  }
}

TEST(CheckReducibleTest, OtherDtypesAreUnimplemented) {
  EXPECT_OK(CheckReducible(DType::kFloat16));
  for (const DType dtype :
       {DType::kBool, DType::kUint8, DType::kString, DType::kInvalid}) {
    EXPECT_EQ(CheckReducible(dtype).code(), absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace muster
