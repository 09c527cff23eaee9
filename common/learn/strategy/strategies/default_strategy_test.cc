#include "common/learn/strategy/strategies/default_strategy.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
const TensorType kScalar{DType::kInt64, Shape()};

// x -> x
Graph IdentityStep() {
  GraphBuilder builder(&BuiltinOps(), "identity");
  builder.AddResult(Identity(builder.Parameter("x", kScalar)));
  return std::move(builder).Build().value();
}

class DefaultStrategyTest : public ::testing::Test {
 protected:
  const std::unique_ptr<DefaultStrategy> strategy_ =
      DefaultStrategy::Create({.thread_count = 1}).value();
};

std::vector<int64_t> RunAll(StepLoop& loop, int64_t step_count_max,
                            StepLoop::Outcome* outcome) {
  std::vector<int64_t> seen;
  *outcome = loop.Run(step_count_max,
                      [&](absl::Span<const Tensor> results) {
                        seen.push_back(results[0].scalar<int64_t>());
                        return absl::OkStatus();
                      })
                 .value();
  return seen;
}

TEST_F(DefaultStrategyTest, RunsStepsInTheOrderOfTheDataAndStartsOver) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<StepLoop> loop,
                       strategy_->CreateLoop(IdentityStep(), Dataset::Range(3),
                                             LoopKind::kTrain));
  StepLoop::Outcome outcome;
  EXPECT_THAT(RunAll(*loop, 2, &outcome), ElementsAre(0, 1));
  EXPECT_EQ(outcome.step_count, 2);
  EXPECT_FALSE(outcome.end_of_data);

  EXPECT_THAT(RunAll(*loop, kAll, &outcome), ElementsAre(2));
  EXPECT_EQ(outcome.step_count, 1);
  EXPECT_TRUE(outcome.end_of_data);

  EXPECT_THAT(RunAll(*loop, kAll, &outcome), ElementsAre(0, 1, 2));
}

TEST_F(DefaultStrategyTest, ReshufflesInEachEpoch) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<StepLoop> loop,
      strategy_->CreateLoop(IdentityStep(),
                            Dataset::Range(50).Shuffle(50, {.seed = 3}),
                            LoopKind::kTrain));
  StepLoop::Outcome outcome;
  const std::vector<int64_t> first = RunAll(*loop, kAll, &outcome);
  EXPECT_THAT(RunAll(*loop, kAll, &outcome), Ne(first));
}

TEST_F(DefaultStrategyTest, StepsUpdateItsVariables) {
  proto::VariableSpec spec;
  spec.set_name("total");
  spec.set_dtype(proto::DT_INT64);
  spec.mutable_shape();
  ASSERT_OK(strategy_->variables().Create(spec));
  GraphBuilder builder(&BuiltinOps(), "add");
  AssignAddVariable({"total", kScalar}, builder.Parameter("x", kScalar));
  ASSERT_OK_AND_ASSIGN(const Graph step, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<StepLoop> loop,
      strategy_->CreateLoop(step, Dataset::Range(10), LoopKind::kTrain));
  ASSERT_OK(
      loop->Run(kAll, [](absl::Span<const Tensor>) { return absl::OkStatus(); })
          .status());
  ASSERT_OK_AND_ASSIGN(const Tensor total,
                       strategy_->variables().Read("total"));
  EXPECT_EQ(total.scalar<int64_t>(), 45);
}

TEST_F(DefaultStrategyTest, EachStepDrawsItsOwnRandomNumbers) {
  GraphBuilder builder(&BuiltinOps(), "draw");
  builder.Parameter("x", kScalar);
  builder.AddResult(RandomUniform(StepSeed(builder), Shape()));
  ASSERT_OK_AND_ASSIGN(const Graph step, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<StepLoop> loop,
      strategy_->CreateLoop(step, Dataset::Range(2), LoopKind::kTrain));
  std::vector<float> drawn;
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_OK(loop->Run(kAll,
                        [&](absl::Span<const Tensor> results) {
                          drawn.push_back(results[0].scalar<float>());
                          return absl::OkStatus();
                        })
                  .status());
  }
  ASSERT_EQ(drawn.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(drawn[i], drawn[j]);
  }
}

TEST_F(DefaultStrategyTest, ErrorOfACallbackStopsTheLoop) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<StepLoop> loop,
                       strategy_->CreateLoop(IdentityStep(), Dataset::Range(9),
                                             LoopKind::kTrain));
  int64_t steps = 0;
  EXPECT_THAT(loop->Run(kAll,
                        [&](absl::Span<const Tensor>) {
                          return ++steps == 4 ? absl::CancelledError("enough")
                                              : absl::OkStatus();
                        }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_EQ(steps, 4);
}

TEST_F(DefaultStrategyTest, AfterAnErrorItStartsOver) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<StepLoop> loop,
                       strategy_->CreateLoop(IdentityStep(), Dataset::Range(3),
                                             LoopKind::kEvaluate));
  EXPECT_THAT(loop->Run(kAll,
                        [](absl::Span<const Tensor> results) {
                          return results[0].scalar<int64_t>() == 1
                                     ? absl::AbortedError("lost")
                                     : absl::OkStatus();
                        }),
              StatusIs(absl::StatusCode::kAborted));
  StepLoop::Outcome outcome;
  EXPECT_THAT(RunAll(*loop, kAll, &outcome), ElementsAre(0, 1, 2));
}

TEST(DefaultStrategyOptionsTest, RefusesNegativeNumbers) {
  EXPECT_THAT(DefaultStrategy::Create({.thread_count = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("thread_count is -1")));
}

}  // namespace
}  // namespace muster
