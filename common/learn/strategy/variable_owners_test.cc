#include "common/learn/strategy/variable_owners.h"

#include <memory>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Claim = VariableOwners::Claim;
using ::testing::HasSubstr;

TEST(VariableOwnersTest, AVariableBelongsToTheFirstWhoTakesIt) {
  VariableOwners owners;
  const auto first = std::make_shared<const int>(1);
  const auto second = std::make_shared<const int>(1);
  EXPECT_EQ(owners.Take("dense/kernel", first).value(), Claim::kNew);
  EXPECT_EQ(owners.Take("dense/kernel", first).value(), Claim::kRepeated);
  EXPECT_EQ(owners.Take("dense/bias", second).value(), Claim::kNew);
  EXPECT_THAT(owners.Take("dense/kernel", second).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("variable \"dense/kernel\"")));
}

TEST(VariableOwnersTest, AVariableWithoutOwnerIsInherited) {
  VariableOwners owners;
  auto first = std::make_shared<const int>(1);
  const auto second = std::make_shared<const int>(1);
  EXPECT_EQ(owners.Take("dense/kernel", first).value(), Claim::kNew);
  first.reset();
  EXPECT_EQ(owners.Take("dense/kernel", second).value(), Claim::kInherited);
  EXPECT_EQ(owners.Take("dense/kernel", second).value(), Claim::kRepeated);
}

}  // namespace
}  // namespace muster
