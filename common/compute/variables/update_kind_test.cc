#include "common/compute/variables/update_kind.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(UpdateKindTest, KindsFallIntoGroups) {
  EXPECT_TRUE(TakesIndices(UpdateKind::kScatterUpdate));
  EXPECT_TRUE(TakesIndices(UpdateKind::kApplySparseGradient));
  EXPECT_FALSE(TakesIndices(UpdateKind::kApplyGradient));
  EXPECT_TRUE(IsGradient(UpdateKind::kApplyGradient));
  EXPECT_FALSE(IsGradient(UpdateKind::kAssignAdd));
  EXPECT_TRUE(IsAddition(UpdateKind::kScatterSub));
  EXPECT_FALSE(IsAddition(UpdateKind::kAssign));
  EXPECT_TRUE(IsSubtraction(UpdateKind::kScatterSub));
  EXPECT_FALSE(IsSubtraction(UpdateKind::kScatterAdd));
}

}  // namespace
}  // namespace muster
