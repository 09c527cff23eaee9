#include "common/learn/strategy/replica/distributed_variable.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/replica/replica_operations.h"
#include "common/learn/strategy/replica/step_function.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "common/learn/strategy/replica/testing/test_strategy.h"
#include "common/net/collectives/reduce_op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Aggregation = VariableAggregation;
using Synchronization = VariableSynchronization;

class DistributedVariableTest : public ::testing::Test {
 protected:
  absl::StatusOr<DistributedVariable> Create(const VariableOptions& options) {
    return CreateVariable(*strategy_, absl::StrCat("v", next_name_++), {},
                          options);
  }
  DistributedVariable OnRead(Aggregation aggregation) {
    return Create({.synchronization = Synchronization::kOnRead,
                   .aggregation = aggregation})
        .value();
  }
  DistributedVariable OnWrite(Aggregation aggregation) {
    return Create({.trainable = false, .aggregation = aggregation}).value();
  }

  // Makes replica 0 assign 2 and replica 1 assign 6.
  absl::Status AssignByReplicas(const DistributedVariable& variable,
                                bool adds = false) {
    const auto step = StepFunction::Of("assign", [&](Value x) {
      if (adds) {
        variable.AssignAdd(x);
      } else {
        variable.Assign(x);
      }
    });
    return strategy_
        ->Run(step, {PerReplica({Tensor::Scalar(2.0f), Tensor::Scalar(6.0f)})})
        .status();
  }

  float Copy(const DistributedVariable& variable, int replica) {
    return strategy_->variables()
        .copy(replica)
        .Read(variable.name())
        .value()
        .scalar<float>();
  }

  const std::unique_ptr<TestStrategy> strategy_ = MakeTestStrategy(2);
  int next_name_ = 0;
};

TEST_F(DistributedVariableTest, TrainableUnlessSynchronizedOnReading) {
  ASSERT_OK_AND_ASSIGN(const DistributedVariable plain, Create({}));
  EXPECT_TRUE(plain.trainable());
  EXPECT_EQ(plain.synchronization(), Synchronization::kOnWrite);
  EXPECT_FALSE(OnRead(Aggregation::kSum).trainable());
}

TEST_F(DistributedVariableTest, InvalidCombinationsAreRejected) {
  EXPECT_THAT(
      Create({.trainable = true, .synchronization = Synchronization::kOnRead}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("\"v0\""), HasSubstr("trainable"))));
  EXPECT_THAT(
      Create({.synchronization = Synchronization::kNone}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("strategy \"test\""), HasSubstr("2 replicas"))));
  EXPECT_THAT(Create({.aggregation = static_cast<Aggregation>(9)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no aggregation 9")));
  EXPECT_THAT(Create({.synchronization = static_cast<Synchronization>(9)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no synchronization 9")));
}

TEST_F(DistributedVariableTest, OneReplicaNeedsNoSynchronization) {
  const auto one = MakeTestStrategy(1);
  EXPECT_OK(CreateVariable(*one, "v", {},
                           {.synchronization = Synchronization::kNone}));
}

TEST_F(DistributedVariableTest, BelongsToTheStrategyInScope) {
  const auto other = MakeTestStrategy(1);
  ASSERT_OK_AND_ASSIGN(const StrategyScope scope,
                       StrategyScope::Enter(*strategy_));
  EXPECT_OK(Create({}));
  EXPECT_THAT(CreateVariable(*other, "w", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is in scope")));
}

TEST_F(DistributedVariableTest, OnWriteEveryCopyTakesTheAggregate) {
  for (const auto& [aggregation, wanted] :
       {std::pair{Aggregation::kSum, 8.0f},
        {Aggregation::kMean, 4.0f},
        {Aggregation::kOnlyFirstReplica, 2.0f}}) {
    const DistributedVariable variable = OnWrite(aggregation);
    ASSERT_OK(AssignByReplicas(variable));
    EXPECT_EQ(Copy(variable, 0), wanted);
    EXPECT_EQ(Copy(variable, 1), wanted);
    ASSERT_OK(AssignByReplicas(variable, /*adds=*/true));
    EXPECT_EQ(variable.Read().value().scalar<float>(), 2 * wanted);
  }
}

TEST_F(DistributedVariableTest, OnWriteWithoutAggregationReplicasMayNotAssign) {
  const DistributedVariable variable = OnWrite(Aggregation::kNone);
  EXPECT_THAT(
      AssignByReplicas(variable),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(variable.name()), HasSubstr("aggregation"))));
  EXPECT_OK(variable.Assign(Tensor::Scalar(3.0f)));
  EXPECT_OK(variable.AssignAdd(Tensor::Scalar(1.0f)));
  EXPECT_EQ(Copy(variable, 0), 4);
  EXPECT_EQ(Copy(variable, 1), 4);
}

TEST_F(DistributedVariableTest, OnReadReplicasKeepTheirOwn) {
  for (const auto& [aggregation, wanted] :
       {std::pair{Aggregation::kSum, 8.0f},
        {Aggregation::kMean, 4.0f},
        {Aggregation::kOnlyFirstReplica, 2.0f}}) {
    const DistributedVariable variable = OnRead(aggregation);
    ASSERT_OK(AssignByReplicas(variable));
    EXPECT_EQ(Copy(variable, 0), 2);
    EXPECT_EQ(Copy(variable, 1), 6);
    EXPECT_EQ(variable.Read().value().scalar<float>(), wanted);
  }
}

TEST_F(DistributedVariableTest, OnReadWithoutAggregationHasNoValueOfAll) {
  const DistributedVariable variable = OnRead(Aggregation::kNone);
  ASSERT_OK(AssignByReplicas(variable));
  EXPECT_EQ(Copy(variable, 1), 6);
  EXPECT_THAT(variable.Read(), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("aggregation")));
}

TEST_F(DistributedVariableTest, OnReadAssigningFromOutsideDividesASum) {
  const DistributedVariable sum = OnRead(Aggregation::kSum);
  ASSERT_OK(sum.Assign(Tensor::Scalar(10.0f)));
  EXPECT_EQ(Copy(sum, 0), 5);
  EXPECT_EQ(sum.Read().value().scalar<float>(), 10);
  for (const absl::Status& status : {sum.AssignAdd(Tensor::Scalar(1.0f)),
                                     sum.AssignSub(Tensor::Scalar(1.0f))}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("once for each")));
  }
  const DistributedVariable mean = OnRead(Aggregation::kMean);
  ASSERT_OK(mean.Assign(Tensor::Scalar(10.0f)));
  ASSERT_OK(mean.AssignSub(Tensor::Scalar(1.0f)));
  EXPECT_EQ(Copy(mean, 1), 9);
  EXPECT_EQ(mean.Read().value().scalar<float>(), 9);
}

TEST_F(DistributedVariableTest, OnReadHasNoRowsToUpdate) {
  ASSERT_OK_AND_ASSIGN(
      const DistributedVariable table,
      CreateVariable(*strategy_, "table", {3},
                     {.synchronization = Synchronization::kOnRead,
                      .aggregation = Aggregation::kSum}));
  const auto step = StepFunction::Of("scatter", [&](Value indices, Value rows) {
    table.ScatterAdd(indices, rows);
  });
  EXPECT_THAT(
      strategy_->Run(step, {Tensor::FromValues<int64_t>({1}, {0}),
                            Tensor::FromValues<float>({1}, {1})}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("\"table\"")));
}

}  // namespace
}  // namespace muster
