#include "common/learn/strategy/replica/strategy_scope.h"

#include <memory>
#include <thread>
#include <utility>

#include "common/core/base/testing/status_matchers.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Renamed : public Strategy {
 public:
  absl::string_view name() const override { return "mirrored"; }
  int num_replicas_in_sync() const override { return 2; }
  bool draws_from_copies() const override { return false; }
  VariableStore& variables() override { return inner_->variables(); }
  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph& step,
                                                       const Dataset& dataset,
                                                       LoopKind kind) override {
    return inner_->CreateLoop(step, dataset, kind);
  }
  const WorkerAgreement& agreement() const override {
    return inner_->agreement();
  }
  TrainingRecovery* recovery() override { return inner_->recovery(); }
  StrategyReport Report() const override { return inner_->Report(); }

 private:
  const std::unique_ptr<DefaultStrategy> inner_ =
      DefaultStrategy::Create().value();
};

class StrategyScopeTest : public ::testing::Test {
 protected:
  Renamed mirrored_;
  const std::unique_ptr<DefaultStrategy> default_ =
      DefaultStrategy::Create().value();
};

TEST_F(StrategyScopeTest, EndsWithItsLifetime) {
  EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(::testing::IsNull()));
  {
    ASSERT_OK_AND_ASSIGN(const StrategyScope scope,
                         StrategyScope::Enter(mirrored_));
    EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(&mirrored_));
  }
  EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(::testing::IsNull()));
  EXPECT_OK(StrategyScope::Enter(*default_));
}

TEST_F(StrategyScopeTest, TheSameStrategyMayBeEnteredAgain) {
  ASSERT_OK_AND_ASSIGN(StrategyScope outer, StrategyScope::Enter(mirrored_));
  {
    ASSERT_OK_AND_ASSIGN(const StrategyScope inner,
                         StrategyScope::Enter(mirrored_));
    EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(&mirrored_));
  }
  EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(&mirrored_));
  const StrategyScope moved = std::move(outer);
  EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(&mirrored_));
}

TEST_F(StrategyScopeTest, AnotherOneInsideIsRefusedAndBothAreNamed) {
  ASSERT_OK_AND_ASSIGN(const StrategyScope scope,
                       StrategyScope::Enter(mirrored_));
  EXPECT_THAT(StrategyScope::Enter(*default_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("strategy \"default\""),
                             HasSubstr("strategy \"mirrored\""))));
  Renamed other;
  EXPECT_THAT(StrategyScope::Enter(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another strategy \"mirrored\"")));
  EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(&mirrored_));
}

TEST_F(StrategyScopeTest, BelongsToOneThread) {
  ASSERT_OK_AND_ASSIGN(const StrategyScope scope,
                       StrategyScope::Enter(mirrored_));
  std::thread([&] {
    EXPECT_THAT(StrategyInScope("a test"), IsOkAndHolds(::testing::IsNull()));
    EXPECT_OK(StrategyScope::Enter(*default_));
  }).join();
}

}  // namespace
}  // namespace muster
