// Tests loops on a GPU whose steps begin before the previous step is done.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
const TensorType kScalar{DType::kInt64, Shape()};

// Computes total += x, last = x and 100 / (3 - x). The value 3 is an error.
Graph Step() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", kScalar);
  AssignAddVariable({"total", kScalar}, x);
  AssignVariable({"last", kScalar}, x);
  builder.AddResult(builder.Constant(Tensor::Scalar<int64_t>(100)) /
                    (builder.Constant(Tensor::Scalar<int64_t>(3)) - x));
  return std::move(builder).Build().value();
}

class OverlappingStepsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_OK(UseGpusUnderTest(1)); }

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(strategy_, DefaultStrategy::Create());
    for (const char* const name : {"total", "last"}) {
      proto::VariableSpec spec;
      spec.set_name(name);
      spec.set_dtype(proto::DT_INT64);
      spec.mutable_shape();
      ASSERT_OK(strategy_->variables().Create(spec));
    }
  }

  void MakeLoop(const Dataset& dataset) {
    ASSERT_OK_AND_ASSIGN(
        loop_, strategy_->CreateLoop(Step(), dataset, LoopKind::kTrain));
    ASSERT_NE(loop_->overlapping(), nullptr);
  }

  int64_t ReadVariable(const char* name) {
    return strategy_->variables().Read(name)->scalar<int64_t>();
  }

  // Records the results that on_step receives.
  absl::StatusOr<StepLoop::Outcome> Run(int64_t step_count_max) {
    return loop_->Run(step_count_max, [&](absl::Span<const Tensor> results) {
      results_.push_back(results[0].scalar<int64_t>());
      totals_.push_back(ReadVariable("total"));
      positions_.push_back(loop_->seekable()->position().step);
      return absl::OkStatus();
    });
  }

  std::unique_ptr<DefaultStrategy> strategy_;
  std::unique_ptr<StepLoop> loop_;
  std::vector<int64_t> results_;
  std::vector<int64_t> totals_;
  std::vector<int64_t> positions_;
};

// 4, 5, 6, 7, 8
Dataset RightData() { return Dataset::Range(4, 9); }

TEST_F(OverlappingStepsTest, OnStepSeesTheVariablesOfItsStep) {
  ASSERT_NO_FATAL_FAILURE(MakeLoop(RightData()));
  ASSERT_OK(Run(kAll).status());
  EXPECT_THAT(results_, ElementsAre(-100, -50, -33, -25, -20));
  EXPECT_THAT(totals_, ElementsAre(4, 9, 15, 22, 30));
  EXPECT_THAT(positions_, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(OverlappingStepsTest, AStepBeginsBeforeTheOneBeforeIsDone) {
  ASSERT_NO_FATAL_FAILURE(MakeLoop(RightData()));
  loop_->overlapping()->OverlapWhen([](int64_t) { return true; });
  ASSERT_OK_AND_ASSIGN(const StepLoop::Outcome outcome, Run(kAll));
  EXPECT_EQ(outcome.step_count, 5);
  EXPECT_TRUE(outcome.end_of_data);
  EXPECT_THAT(results_, ElementsAre(-100, -50, -33, -25, -20));
  EXPECT_THAT(totals_, ElementsAre(9, 15, 22, 30, 30));
  EXPECT_THAT(positions_, ElementsAre(1, 2, 3, 4, 5));
  ASSERT_TRUE(loop_->DeviceIdleShare().has_value());
  EXPECT_GE(*loop_->DeviceIdleShare(), 0);
  EXPECT_LE(*loop_->DeviceIdleShare(), 1);
  // No step is unfinished between two calls.
  ASSERT_OK(Run(2).status());
  EXPECT_EQ(ReadVariable("total"), 30 + 9);
}

TEST_F(OverlappingStepsTest, ThePredicateLimitsHowFarStepsAreAhead) {
  ASSERT_NO_FATAL_FAILURE(MakeLoop(RightData()));
  // Steps overlap in groups of two.
  loop_->overlapping()->OverlapWhen([&](int64_t unfinished_count) {
    return (results_.size() + unfinished_count) % 2 != 0;
  });
  ASSERT_OK(Run(kAll).status());
  EXPECT_THAT(totals_, ElementsAre(9, 9, 22, 22, 30));
}

TEST_F(OverlappingStepsTest, ADataErrorCancelsLaterSteps) {
  // 1, 2, 3, 4, 5
  ASSERT_NO_FATAL_FAILURE(MakeLoop(Dataset::Range(1, 6)));
  loop_->overlapping()->OverlapWhen([](int64_t) { return true; });
  EXPECT_THAT(Run(kAll), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("integer division by zero")));
  EXPECT_THAT(results_, ElementsAre(50, 100));
  EXPECT_EQ(ReadVariable("total"), 3);
  EXPECT_EQ(ReadVariable("last"), 2);
  // The next run begins with the first element.
  ASSERT_OK(Run(2).status());
  EXPECT_EQ(ReadVariable("total"), 6);
}

TEST_F(OverlappingStepsTest, AnErrorOfOnStepLeavesNoStepUnderWay) {
  ASSERT_NO_FATAL_FAILURE(MakeLoop(RightData()));
  loop_->overlapping()->OverlapWhen([](int64_t) { return true; });
  const auto fail = [](absl::Span<const Tensor>) {
    return absl::CancelledError("enough");
  };
  EXPECT_THAT(loop_->Run(kAll, fail),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
  ASSERT_OK(Run(1).status());
  EXPECT_THAT(results_, ElementsAre(-100));
}

}  // namespace
}  // namespace muster
