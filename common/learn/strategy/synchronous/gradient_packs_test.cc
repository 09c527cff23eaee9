#include "common/learn/strategy/synchronous/gradient_packs.h"

#include <cstdint>
#include <vector>

#include "common/core/base/random.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

PackItem Floats(int64_t count) { return {DType::kFloat32, count}; }
PackItem Doubles(int64_t count) { return {DType::kFloat64, count}; }

std::vector<int> PacksOf(const PackPlan& plan) {
  std::vector<int> packs;
  for (const PackPlan::Place& place : plan.places) packs.push_back(place.pack);
  return packs;
}

TEST(GradientPacksTest, WithoutALimitADtypeIsOnePack) {
  const PackPlan plan =
      PlanPacks({{Floats(1000), Floats(3), Floats(100000)}}, {{Floats(4)}}, 0);
  ASSERT_EQ(plan.packs.size(), 1u);
  EXPECT_THAT(PacksOf(plan), ElementsAre(0, 0, 0, 0));
  // 16 floats are 64 bytes.
  EXPECT_EQ(plan.places[1].begin, 1008);
  EXPECT_EQ(plan.places[2].begin, 1024);
  EXPECT_EQ(plan.places[3].begin, 101024);
  EXPECT_EQ(plan.packs[0].element_count, 101028);
  EXPECT_EQ(plan.packs[0].last_gradient, 3);
}

TEST(GradientPacksTest, ANewPackBeginsWhenTheLastExceedsTheLimit) {
  // A pack of exactly the limit does not exceed it.
  const PackPlan plan = PlanPacks(
      {{Floats(16), Floats(16), Floats(16), Floats(64), Floats(16)}}, {}, 128);
  EXPECT_THAT(PacksOf(plan), ElementsAre(0, 0, 0, 1, 2));
  EXPECT_EQ(plan.packs[0].last_gradient, 2);
  EXPECT_EQ(plan.packs[1].last_gradient, 3);
  EXPECT_EQ(plan.packs[2].last_gradient, 4);
}

TEST(GradientPacksTest, DtypesAreNotMixedAndPacksAreOrderedByCompletion) {
  const PackPlan plan = PlanPacks(
      {{Floats(16), Doubles(8), Floats(1), Doubles(8), Floats(1)}}, {}, 60);
  // The second pack of doubles begins after that of floats and is complete
  // before it.
  EXPECT_THAT(PacksOf(plan), ElementsAre(0, 1, 3, 2, 3));
  EXPECT_EQ(plan.packs[1].dtype, DType::kFloat64);
  EXPECT_EQ(plan.packs[2].dtype, DType::kFloat64);
  EXPECT_EQ(plan.packs[3].dtype, DType::kFloat32);
}

TEST(GradientPacksTest, PartsAreNeighboursInOnePack) {
  const std::vector<PackItem> items = {Floats(10), Doubles(3), Floats(5),
                                       Floats(4), Doubles(2)};
  const PackPlan plan = PlanPacks({items.data(), 3}, {items.data() + 3, 2}, 0);
  const std::vector<PackPart> gradients = PartsOf(plan, items, 0, 3);
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0].first_item, 0);
  EXPECT_EQ(gradients[0].element_count, 16 + 5);
  EXPECT_EQ(gradients[1].first_item, 1);
  EXPECT_EQ(gradients[1].element_count, 3);
  const std::vector<PackPart> trailer = PartsOf(plan, items, 3, 5);
  ASSERT_EQ(trailer.size(), 2u);
  EXPECT_EQ(trailer[0].first_item, 3);
  EXPECT_EQ(trailer[0].element_count, 4);
  EXPECT_EQ(trailer[1].element_count, 2);
}

TEST(GradientPacksTest, TheTrailerJoinsTheLastPackOfItsDtype) {
  const PackPlan plan =
      PlanPacks({{Floats(32), Doubles(2), Floats(1)}},
                {{Floats(3), PackItem{DType::kInt64, 2}, Floats(5)}}, 4);
  // The second pack of floats waits for the trailer, and so does that of int64.
  EXPECT_THAT(PacksOf(plan), ElementsAre(0, 1, 2, 2, 3, 2));
  EXPECT_EQ(plan.packs[2].last_gradient, 3);
  EXPECT_EQ(plan.packs[3].dtype, DType::kInt64);
  EXPECT_EQ(plan.packs[3].last_gradient, 3);
}

TEST(GradientPacksTest, NoGradientsMeanNoPacks) {
  EXPECT_TRUE(PlanPacks({}, {}, 0).packs.empty());
  const PackPlan trailer_only = PlanPacks({}, {{Floats(4)}}, 1);
  ASSERT_EQ(trailer_only.packs.size(), 1u);
  EXPECT_EQ(trailer_only.packs[0].last_gradient, 0);
}

TEST(GradientPacksTest, ItemsAreAlignedAndOrdered) {
  for (uint64_t round = 0; round < 200; ++round) {
    std::vector<PackItem> gradients;
    for (uint64_t i = 0; i < FoldIn(round, 1) % 12; ++i) {
      const uint64_t drawn = FoldIn(FoldIn(round, 2), i);
      const DType dtypes[] = {DType::kFloat32, DType::kFloat64,
                              DType::kBfloat16};
      gradients.push_back(
          {dtypes[drawn % 3], static_cast<int64_t>(drawn / 3 % 100)});
    }
    const int64_t limit = static_cast<int64_t>(FoldIn(round, 3) % 500);
    const PackPlan plan = PlanPacks(gradients, {{Floats(7)}}, limit);
    ASSERT_EQ(plan.places.size(), gradients.size() + 1);
    std::vector<int64_t> ends(plan.packs.size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      const PackPlan::Place& place = plan.places[i];
      const PackPlan::Pack& pack = plan.packs[place.pack];
      EXPECT_EQ(pack.dtype, gradients[i].dtype);
      EXPECT_EQ(place.begin * SizeOf(pack.dtype) % Buffer::kAlignmentBytes, 0u);
      EXPECT_GE(place.begin, ends[place.pack]);
      ends[place.pack] = place.begin + gradients[i].element_count;
      EXPECT_LE(ends[place.pack], pack.element_count);
      EXPECT_LE(static_cast<int>(i), pack.last_gradient);
    }
    for (size_t i = 1; i < plan.packs.size(); ++i) {
      EXPECT_LE(plan.packs[i - 1].last_gradient, plan.packs[i].last_gradient);
    }
  }
}

}  // namespace
}  // namespace muster
