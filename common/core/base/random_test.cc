#include "common/core/base/random.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Known answers published with the reference implementation (Random123).
TEST(PhiloxTest, MatchesPublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox(0, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(FoldInTest, DifferentDataGivesDifferentKeys) {
  std::set<uint64_t> keys = {7};
  for (uint64_t data = 0; data < 1000; ++data) {
    EXPECT_TRUE(keys.insert(FoldIn(7, data)).second);
  }
  EXPECT_NE(FoldIn(7, "ab"), FoldIn(7, "ba"));
}

TEST(RandomStreamTest, PositionRestoresTheStream) {
  RandomStream stream(3);
  stream.Next64();
  RandomStream resumed(stream.key(), stream.position());
  EXPECT_EQ(stream.Next64(), resumed.Next64());
}

TEST(RandomStreamTest, BelowCoversItsRangeEvenly) {
  RandomStream stream(11);
  constexpr int kBound = 6;
  constexpr int kDraws = 60000;
  std::array<int, kBound> counts = {};
  for (int i = 0; i < kDraws; ++i) ++counts[stream.Below(kBound)];
  for (const int count : counts) EXPECT_NEAR(count, kDraws / kBound, 400);
}

TEST(UnitNormalsTest, HasMeanZeroAndVarianceOne) {
  double sum = 0, sum_of_squares = 0;
  constexpr int kPairs = 100000;
  for (int i = 0; i < kPairs; ++i) {
    const auto words = Philox(5, i);
    for (const float x : UnitNormals(words[0], words[1])) {
      ASSERT_TRUE(std::isfinite(x));
      sum += x;
      sum_of_squares += double{x} * x;
    }
  }
  EXPECT_NEAR(sum / (2 * kPairs), 0.0, 0.01);
  EXPECT_NEAR(sum_of_squares / (2 * kPairs), 1.0, 0.02);
}

}  // namespace
}  // namespace muster
