#include "ps/shard_rules.h"

#include <memory>
#include <string>

#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const UpdateRule> RuleOf(const Optimizer& optimizer) {
  return UpdateRule::Create(optimizer).value();
}

const TensorType kFloats = {DType::kFloat32, {10}};  // 40 bytes.
constexpr bool kWhole = true;

TEST(ShardRulesTest, SlotsCountForShardsThatTakeGradients) {
  ShardRules rules(/*memory_bytes_max=*/0);
  ASSERT_OK(rules.Set(RuleOf(Adam()), {}, /*is_default=*/true));
  rules.Add(0, "weights", kFloats, kWhole);
  rules.Add(2, "steps", {DType::kInt64, {3}}, kWhole);
  EXPECT_EQ(rules.value_bytes(), 64);
  EXPECT_EQ(rules.slot_bytes(), 80);
  EXPECT_EQ(rules.Of(0)->name(), "adam");
  rules.Clear();
  EXPECT_EQ(rules.value_bytes() + rules.slot_bytes(), 0);
}

TEST(ShardRulesTest, ARuleForWhichThereIsNoMemoryChangesNothing) {
  ShardRules rules(/*memory_bytes_max=*/100);
  rules.Add(0, "weights", kFloats, kWhole);
  EXPECT_THAT(rules.Set(RuleOf(Adam()), {}, /*is_default=*/true),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("40 bytes and their slots 80")));
  EXPECT_EQ(rules.Of(0), nullptr);
  ASSERT_OK(rules.Set(RuleOf(Sgd()), {}, /*is_default=*/true));
  EXPECT_EQ(rules.Of(0)->name(), "sgd");
  ASSERT_OK(rules.CheckNew("more", kFloats, kWhole));
  rules.Add(1, "more", kFloats, kWhole);
  EXPECT_THAT(rules.CheckNew("too much", kFloats, kWhole),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ShardRulesTest, AShardKeepsItsSlotsUntilItsVariableStartsOver) {
  ShardRules rules(/*memory_bytes_max=*/0);
  ASSERT_OK(rules.Set(RuleOf(Adam()), {"a"}, /*is_default=*/false));
  rules.Add(0, "a", kFloats, kWhole);
  rules.Add(1, "b", kFloats, kWhole);
  EXPECT_EQ(rules.Of(0)->name(), "adam");
  EXPECT_EQ(rules.Of(1), nullptr);
  EXPECT_THAT(rules.Set(RuleOf(Adagrad()), {"a"}, /*is_default=*/false),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("variable \"a\" is adam with 2 slots")));
  EXPECT_EQ(rules.Of(0)->name(), "adam");
  EXPECT_EQ(rules.slot_bytes(), 80);
  rules.Reset("a");
  EXPECT_EQ(rules.Of(0), nullptr);
  EXPECT_EQ(rules.slot_bytes(), 0);
  ASSERT_OK(rules.Set(RuleOf(Sgd()), {"a"}, /*is_default=*/false));
}

TEST(ShardRulesTest, PartsOfVariablesCannotHaveEveryRule) {
  ShardRules rules(/*memory_bytes_max=*/0);
  rules.Add(0, "whole", kFloats, kWhole);
  ASSERT_OK(rules.Set(RuleOf(Lamb()), {}, /*is_default=*/true));
  const auto is_refused =
      StatusIs(absl::StatusCode::kUnimplemented,
               HasSubstr("lamb needs whole variables for an update, and "
                         "variable \"part\" is partitioned"));
  EXPECT_THAT(rules.CheckNew("part", kFloats, /*is_whole=*/false), is_refused);
  rules.Clear();
  rules.Add(0, "part", kFloats, /*is_whole=*/false);
  EXPECT_THAT(rules.Set(RuleOf(Lamb()), {}, /*is_default=*/true), is_refused);
  ASSERT_OK(rules.Set(RuleOf(Adam()), {}, /*is_default=*/true));
}

TEST(ShardRulesTest, SlotsHaveTheShapesOfVariables) {
  ShardRules rules(/*memory_bytes_max=*/0);
  rules.Add(0, "matrix", {DType::kFloat32, {5, 2}}, kWhole);
  EXPECT_THAT(rules.Set(RuleOf(Adafactor()), {}, /*is_default=*/true),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("has a slot \"r\" of another shape")));
}

}  // namespace
}  // namespace muster
