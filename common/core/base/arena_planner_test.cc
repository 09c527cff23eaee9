#include "common/core/base/arena_planner.h"

#include <utility>
#include <vector>

#include "common/core/base/random.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ArenaPlannerTest, BlocksStartOnCacheLinesAndEmptyOnesAreApart) {
  ArenaPlanner planner;
  EXPECT_EQ(planner.Allocate(1).offset_bytes, 0u);
  EXPECT_EQ(planner.Allocate(0).offset_bytes, 64u);
  EXPECT_EQ(planner.Allocate(65).offset_bytes, 128u);
  EXPECT_EQ(planner.size_bytes(), 256u);
}

TEST(ArenaPlannerTest, AFreedBlockIsUsedAgain) {
  ArenaPlanner planner;
  const auto first = planner.Allocate(128);
  planner.Allocate(64);
  planner.Free(first);
  EXPECT_EQ(planner.Allocate(100).offset_bytes, first.offset_bytes);
  EXPECT_EQ(planner.size_bytes(), 192u);
}

TEST(ArenaPlannerTest, NeighbouringHolesBecomeOne) {
  ArenaPlanner planner;
  const auto a = planner.Allocate(64);
  const auto b = planner.Allocate(64);
  const auto c = planner.Allocate(64);
  planner.Allocate(64);
  planner.Free(a);
  planner.Free(c);
  planner.Free(b);
  EXPECT_EQ(planner.Allocate(192).offset_bytes, 0u);
}

TEST(ArenaPlannerTest, TheSmallestHoleThatFitsIsTaken) {
  ArenaPlanner planner;
  const auto large = planner.Allocate(640);
  planner.Allocate(64);
  const auto small = planner.Allocate(128);
  planner.Allocate(64);
  planner.Free(large);
  planner.Free(small);
  EXPECT_EQ(planner.Allocate(128).offset_bytes, small.offset_bytes);
}

TEST(ArenaPlannerTest, AHoleAtTheEndGrows) {
  ArenaPlanner planner;
  planner.Free(planner.Allocate(64));
  EXPECT_EQ(planner.Allocate(256).offset_bytes, 0u);
  EXPECT_EQ(planner.size_bytes(), 256u);
}

TEST(ArenaPlannerTest, LiveBlocksNeverOverlap) {
  ArenaPlanner planner;
  RandomStream random(7);
  std::vector<ArenaPlanner::Block> live;
  for (int i = 0; i < 2000; ++i) {
    if (!live.empty() && random.Below(5) < 2) {
      const size_t victim = random.Below(live.size());
      planner.Free(live[victim]);
      live.erase(live.begin() + victim);
      continue;
    }
    const auto block = planner.Allocate(random.Below(1000));
    for (const auto& other : live) {
      ASSERT_TRUE(block.offset_bytes + block.size_bytes <= other.offset_bytes ||
                  other.offset_bytes + other.size_bytes <= block.offset_bytes);
    }
    ASSERT_LE(block.offset_bytes + block.size_bytes, planner.size_bytes());
    live.push_back(block);
  }
}

}  // namespace
}  // namespace muster
