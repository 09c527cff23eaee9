#include "common/net/collectives/message/payload_sink.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

const uint8_t* Bytes(const std::vector<int64_t>& values) {
  return reinterpret_cast<const uint8_t*>(values.data());
}

TEST(PayloadSinkTest, ElementsCutAnywhereAreAccumulatedOnce) {
  const std::vector<int64_t> addend = {int64_t{1} << 40, -2, 300};
  const size_t size_bytes = 3 * sizeof(int64_t);
  for (size_t first = 0; first <= size_bytes; ++first) {
    for (size_t second = first; second <= size_bytes; ++second) {
      std::vector<int64_t> sum = {1, 1, 1};
      AccumulateSink sink(ReduceOp::kSum, DType::kInt64, 1,
                          reinterpret_cast<uint8_t*>(sum.data()));
      sink.Take(Bytes(addend), first);
      sink.Take(Bytes(addend) + first, second - first);
      sink.Take(Bytes(addend) + second, size_bytes - second);
      EXPECT_THAT(sum, ElementsAre((int64_t{1} << 40) + 1, -1, 301));
    }
  }
}

TEST(PayloadSinkTest, TheLastOfAMeanDivides) {
  const std::vector<int64_t> addend = {9, -9};
  std::vector<int64_t> sum = {2, 2};
  AccumulateSink sink(ReduceOp::kMean, DType::kInt64, 3,
                      reinterpret_cast<uint8_t*>(sum.data()));
  sink.Take(Bytes(addend), 16);
  EXPECT_THAT(sum, ElementsAre(3, -2));
}

TEST(PayloadSinkTest, BytesMayBeStoredThroughEitherFunction) {
  std::vector<uint8_t> memory(4, 0);
  StoreSink sink(memory.data());
  const std::vector<uint8_t> bytes = {1, 2};
  sink.Take(bytes.data(), 2);
  sink.memory()->next()[0] = 3;
  sink.memory()->Wrote(1);
  sink.Take(bytes.data(), 1);
  EXPECT_THAT(memory, ElementsAre(1, 2, 3, 1));
}

}  // namespace
}  // namespace muster
