#include "ps/frozen_rows.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(FrozenRowsTest, WhatChangesBeforeItIsReadIsReadAsItWas) {
  auto budget = std::make_shared<AsideBudget>(100);
  FrozenRows rows(/*array_count=*/2, /*block_count=*/2, budget);
  std::vector<uint8_t> live = {1, 2, 3};
  rows.PutAside(1, 0, live);
  live = {7, 8, 9};
  rows.PutAside(1, 0, live);  // The first copy counts.
  EXPECT_EQ(budget->size_bytes(), 3);
  std::vector<uint8_t> out(3);
  ASSERT_TRUE(rows.Take(1, 0, live, out.data()));
  EXPECT_THAT(out, ElementsAre(1, 2, 3));
  EXPECT_EQ(budget->size_bytes(), 0);
  ASSERT_TRUE(rows.Take(0, 0, live, out.data()));
  EXPECT_THAT(out, ElementsAre(7, 8, 9));
  rows.PutAside(0, 0, live);  // It has been read.
  EXPECT_EQ(budget->size_bytes(), 0);
  EXPECT_FALSE(rows.is_read());
}

TEST(FrozenRowsTest, WithoutMemoryAllIsGivenUp) {
  auto budget = std::make_shared<AsideBudget>(4);
  std::vector<uint8_t> live = {1, 2, 3};
  {
    FrozenRows rows(1, 3, budget);
    rows.PutAside(0, 0, live);
    rows.PutAside(0, 1, live);
    std::vector<uint8_t> out(3);
    EXPECT_FALSE(rows.Take(0, 2, live, out.data()));
  }
  EXPECT_EQ(budget->size_bytes(), 0);
}

}  // namespace
}  // namespace muster
