#include "common/compute/variables/variable_rules.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const UpdateRule> RuleOf(const Optimizer& optimizer) {
  return UpdateRule::Create(optimizer).value();
}

TEST(VariableRulesTest, AVariableHasItsOwnRuleOrTheDefault) {
  VariableRules rules;
  EXPECT_EQ(rules.Of("a"), nullptr);
  const auto sgd = RuleOf(Sgd());
  const auto adam = RuleOf(Adam());
  ASSERT_OK(rules.Set({"a"}, adam));
  ASSERT_OK(rules.SetDefault(sgd));
  EXPECT_EQ(rules.Of("a"), adam);
  EXPECT_EQ(rules.Of("b"), sgd);
  rules.Reset({"a"});
  EXPECT_EQ(rules.Of("a"), sgd);
}

TEST(VariableRulesTest, ARuleIsReplacedByOneOfItsNameOnly) {
  VariableRules rules;
  ASSERT_OK(rules.Set({"a", "b"}, RuleOf(Adam())));
  const auto slower = RuleOf(Adam({.learning_rate = 1e-5}));
  ASSERT_OK(rules.Set({"a"}, slower));
  EXPECT_EQ(rules.Of("a"), slower);
  EXPECT_THAT(
      rules.Set({"c", "a"}, RuleOf(Sgd())),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("the optimizer of variable \"a\" is adam and cannot "
                         "become sgd")));
  EXPECT_EQ(rules.Of("c"), nullptr) << "all or nothing";
  ASSERT_OK(rules.SetDefault(RuleOf(Sgd())));
  EXPECT_THAT(rules.SetDefault(RuleOf(Adam())),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the optimizer is sgd")));
}

TEST(SessionRulesTest, FollowTheRulesOfTheirVariables) {
  SessionRules session(std::vector<VariableUse>{{.name = "a"}, {.name = "b"}});
  EXPECT_EQ(session[0], nullptr);
  VariableRules rules;
  const auto adam = RuleOf(Adam());
  ASSERT_OK(rules.Set({"b"}, adam));
  session.Update(rules);
  EXPECT_EQ(session[0], nullptr);
  EXPECT_EQ(session[1], adam);
  rules.Reset({"b"});
  EXPECT_EQ(session[1], adam);
  session.Update(rules);
  EXPECT_EQ(session[1], nullptr);
}

}  // namespace
}  // namespace muster
