#include "common/core/base/did_you_mean.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::string_view kRoles[] = {"chief", "worker", "ps", "evaluator"};

TEST(DidYouMeanTest, NamesTheNearestCandidate) {
  EXPECT_EQ(DidYouMean("wroker", kRoles), "; did you mean \"worker\"?");
  EXPECT_EQ(DidYouMean("workers", kRoles), "; did you mean \"worker\"?");
  EXPECT_EQ(DidYouMean("cheif", kRoles), "; did you mean \"chief\"?");
  EXPECT_EQ(DidYouMean("evalutor", kRoles), "; did you mean \"evaluator\"?");
}

TEST(DidYouMeanTest, IgnoresCase) {
  EXPECT_EQ(DidYouMean("PS", kRoles), "; did you mean \"ps\"?");
  EXPECT_EQ(DidYouMean("Worker", kRoles), "; did you mean \"worker\"?");
}

TEST(DidYouMeanTest, IgnoresUnrelatedNames) {
  EXPECT_EQ(DidYouMean("tpu", kRoles), "");
  EXPECT_EQ(DidYouMean("", kRoles), "");
  EXPECT_EQ(DidYouMean(std::string(1 << 20, 'w'), kRoles), "");
}

}  // namespace
}  // namespace muster
