#include "ps/frozen_rows.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(FrozenRowsTest, ReturnsTheStateBeforeLaterChanges) {
  auto budget = std::make_shared<AsideBudget>(100);
  {
    FrozenRows rows(/*array_count=*/2, /*block_count=*/2, /*array_bytes=*/5,
                    budget);
    std::vector<uint8_t> live = {1, 2, 3};
    std::vector<uint8_t> rest = {4, 5};
    const FrozenRows::Block first = {.array = 1, .number = 0, .live = live};
    const FrozenRows::Block second = {
        .array = 1, .number = 1, .offset_bytes = 3, .live = rest};
    rows.PutAside(first);
    rows.PutAside(second);
    live = {7, 8, 9};
    rest = {6, 6};
    rows.PutAside(first);  // Only the first call copies.
    EXPECT_EQ(budget->size_bytes(), 5);
    std::vector<uint8_t> out(3);
    ASSERT_TRUE(rows.Take(first, out.data()));
    EXPECT_THAT(out, ElementsAre(1, 2, 3));
    out.resize(2);
    ASSERT_TRUE(rows.Take(second, out.data()));
    EXPECT_THAT(out, ElementsAre(4, 5));
    const FrozenRows::Block other = {.array = 0, .number = 0, .live = live};
    out.resize(3);
    ASSERT_TRUE(rows.Take(other, out.data()));
    EXPECT_THAT(out, ElementsAre(7, 8, 9));
    rows.PutAside(other);  // Has no effect: the block has been read.
    EXPECT_EQ(budget->size_bytes(), 5);
    EXPECT_FALSE(rows.is_read());
  }
  EXPECT_EQ(budget->size_bytes(), 0);
}

TEST(FrozenRowsTest, AbandonsTheSnapshotWithoutMemory) {
  auto budget = std::make_shared<AsideBudget>(4);
  const std::vector<uint8_t> live = {1, 2, 3};
  {
    FrozenRows rows(/*array_count=*/1, /*block_count=*/3, /*array_bytes=*/9,
                    budget);
    rows.PutAside({.number = 0, .live = live});
    rows.PutAside({.number = 1, .offset_bytes = 3, .live = live});
    std::vector<uint8_t> out(3);
    EXPECT_FALSE(
        rows.Take({.number = 2, .offset_bytes = 6, .live = live}, out.data()));
  }
  EXPECT_EQ(budget->size_bytes(), 0);
}

}  // namespace
}  // namespace muster
