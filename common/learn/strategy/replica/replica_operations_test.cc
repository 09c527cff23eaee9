#include "common/learn/strategy/replica/replica_operations.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/losses.h"
#include "common/learn/strategy/cross_device/distributed_values.h"
#include "common/learn/strategy/replica/distributed_variable.h"
#include "common/learn/strategy/replica/replica_context.h"
#include "common/learn/strategy/replica/step_function.h"
#include "common/learn/strategy/replica/testing/test_strategy.h"
#include "common/net/collectives/reduce_op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Floats(const std::vector<float>& values) {
  return Tensor::FromSpan<float>({static_cast<int64_t>(values.size())}, values);
}

Tensor Column(const std::vector<float>& values) {
  return Floats(values).Reshaped({static_cast<int64_t>(values.size()), 1});
}

std::vector<float> Values(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

// Returns the results of `call` on all workers of a group, each on its own
// thread.
template <typename Result>
std::vector<absl::StatusOr<Result>> OnAll(
    const std::vector<std::unique_ptr<TestStrategy>>& workers,
    const std::function<absl::StatusOr<Result>(int worker, TestStrategy&)>&
        call) {
  std::vector<absl::StatusOr<Result>> results(workers.size(),
                                              absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (size_t w = 0; w < workers.size(); ++w) {
    threads.emplace_back(
        [&, w] { results[w] = call(static_cast<int>(w), *workers[w]); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(ReplicaRunTest, EveryReplicaGetsItsOwnAndTheRestIsForAll) {
  const auto strategy = MakeTestStrategy(3);
  const auto step = StepFunction::Of("step", [](Value own, Value same) {
    return std::vector<Value>{own * same, own + same};
  });
  ASSERT_OK_AND_ASSIGN(
      const std::vector<PerReplica> results,
      strategy->Run(step, {PerReplica({Floats({1}), Floats({2}), Floats({3})}),
                           Floats({10})}));
  ASSERT_EQ(results.size(), 2u);
  for (int r = 0; r < 3; ++r) {
    EXPECT_THAT(Values(results[0][r]), ElementsAre(10 * (r + 1)));
    EXPECT_THAT(Values(results[1][r]), ElementsAre(11 + r));
  }
  EXPECT_EQ(strategy->LocalResults(results[0]).size(), 3u);
  EXPECT_EQ(strategy->LocalResults(Floats({1})).size(), 1u);
}

TEST(ReplicaRunTest, ReplicasKnowTheirNumberAndCount) {
  const auto strategy = MakeTestStrategy(2);
  int traced_for = 0;
  const auto step =
      StepFunction::Of("step", [&](const ReplicaContext& replica, Value x) {
        traced_for = replica.num_replicas_in_sync();
        const Value id =
            Cast(replica.replica_id_in_sync_group(), DType::kFloat32);
        return std::vector<Value>{replica.AllReduce(ReduceOp::kMean, x),
                                  replica.AllGather(x + id, 0)};
      });
  ASSERT_OK_AND_ASSIGN(
      const auto results,
      strategy->Run(step, {PerReplica({Floats({1, 2}), Floats({3, 6})})}));
  EXPECT_EQ(traced_for, 2);
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(Values(results[0][r]), ElementsAre(2, 4));
    EXPECT_THAT(Values(results[1][r]), ElementsAre(1, 2, 4, 7));
  }
}

TEST(ReplicaRunTest, IsTracedOnceForEachCombinationOfTypes) {
  const auto strategy = MakeTestStrategy(2);
  int trace_count = 0;
  const auto step = StepFunction::Of("step", [&](Value x) {
    ++trace_count;
    return x;
  });
  for (int i = 0; i < 3; ++i) ASSERT_OK(strategy->Run(step, {Floats({1})}));
  EXPECT_EQ(trace_count, 1);
  ASSERT_OK(strategy->Run(step, {Floats({1, 2})}));
  EXPECT_EQ(trace_count, 2);
  ASSERT_OK(strategy->Run(step, {Floats({3})}));
  EXPECT_EQ(trace_count, 2);
  // Replicas with different extents share one graph.
  ASSERT_OK(
      strategy->Run(step, {PerReplica({Floats({1, 2}), Floats({3, 4, 5})})}));
  ASSERT_OK(strategy->Run(step, {PerReplica({Floats({}), Floats({3})})}));
  EXPECT_EQ(trace_count, 3);
}

TEST(ReplicaRunTest, ErrorsAreReported) {
  const auto strategy = MakeTestStrategy(2);
  const auto step = StepFunction::Of("my_step", [](Value x) { return x; });
  EXPECT_THAT(strategy->Run(step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("step \"my_step\" takes 1 arguments")));
  EXPECT_THAT(strategy->Run(step, {PerReplica({Floats({1})})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("argument 0 of the step: a value of 1 "
                                 "replicas was given, and this process has "
                                 "2")));
  EXPECT_THAT(
      strategy->Run(step, {PerReplica({Floats({1}), Tensor::Scalar(2.0f)})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("float32[]")));
  EXPECT_THAT(strategy->Run(StepFunction()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto bad =
      StepFunction::Of("bad", [](Value x) { return MatMul(x, x); });
  EXPECT_THAT(strategy->Run(bad, {Floats({1})}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReplicaRunTest, CallsForAllReplicasAreRefusedInTheCodeOfOne) {
  const auto strategy = MakeTestStrategy(2);
  std::vector<absl::Status> refusals;
  const auto inner = StepFunction::Of("inner", [](Value x) { return x; });
  const auto step = StepFunction::Of("step", [&](Value x) {
    const Tensor one = Floats({1});
    refusals = {
        strategy->Reduce(ReduceOp::kMean, one).status(),
        strategy->Reduce(ReduceOp::kMean, one, {0}).status(),
        strategy->Gather(one, 0).status(),
        strategy->Run(inner, {one}).status(),
        strategy
            ->DistributeValuesFromFunction(
                [&](const ValueContext&) { return Floats({1}); })
            .status(),
        strategy->DistributeDataset(Dataset::Range(4).Batch(2)).status(),
        CreateVariable(*strategy, "v", {}).status(),
    };
    return x;
  });
  ASSERT_OK(strategy->Run(step, {Floats({1})}));
  ASSERT_EQ(refusals.size(), 7u);
  for (const absl::Status& refusal : refusals) {
    EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("inside of Run")));
  }
  EXPECT_THAT(refusals[0].message(),
              HasSubstr("use ReplicaContext::AllReduce there"));
  EXPECT_OK(strategy->Reduce(ReduceOp::kMean, Floats({1})));
}

TEST(ReplicaRunTest, ContinuesAfterAnErrorOfOneReplica) {
  const auto strategy = MakeTestStrategy(2);
  ASSERT_OK_AND_ASSIGN(
      const DistributedVariable table,
      CreateVariable(*strategy, "table", {4, 1}, {.trainable = false}));
  const auto step =
      StepFunction::Of("lookup", [&](const ReplicaContext& replica, Value ids) {
        const Value rows = GatherVariable(table.handle(), ids);
        return replica.AllReduce(ReduceOp::kSum, rows);
      });
  const auto ids = [](int64_t id) {
    return Tensor::FromValues<int64_t>({1}, {id});
  };
  EXPECT_THAT(strategy->Run(step, {PerReplica({ids(1), ids(9)})}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("9")));
  EXPECT_OK(strategy->Run(step, {PerReplica({ids(1), ids(3)})}));
}

TEST(ReplicaReduceTest, WithoutAxesReplicasBecomeOne) {
  const auto strategy = MakeTestStrategy(2);
  const PerReplica values({Floats({1, 2}), Floats({5, 6})});
  EXPECT_THAT(Values(strategy->Reduce(ReduceOp::kSum, values).value()),
              ElementsAre(6, 8));
  EXPECT_THAT(Values(strategy->Reduce(ReduceOp::kMean, values).value()),
              ElementsAre(3, 4));
  EXPECT_THAT(strategy->Reduce(ReduceOp::kSum, Floats({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("once or once for each")));
}

TEST(ReplicaReduceTest, TheMeanAlongTheBatchCountsEveryExampleOnce) {
  const auto strategy = MakeTestStrategy(3);
  const PerReplica uneven({Floats({1, 2, 3}), Floats({10}), Floats({})});
  EXPECT_THAT(Values(strategy->Reduce(ReduceOp::kMean, uneven, {0}).value()),
              ElementsAre(4));
  EXPECT_THAT(Values(strategy->Reduce(ReduceOp::kSum, uneven, {-1}).value()),
              ElementsAre(16));
  const PerReplica rows({Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4}),
                         Tensor::Zeros(DType::kFloat32, {0, 2}),
                         Tensor::FromValues<float>({1, 2}, {5, 9})});
  EXPECT_THAT(Values(strategy->Reduce(ReduceOp::kMean, rows, {0}).value()),
              ElementsAre(3, 5));
  EXPECT_THAT(Values(strategy->Reduce(ReduceOp::kMean, rows, {0, 1}).value()),
              ElementsAre(4));
  const PerReplica none({Floats({}), Floats({}), Floats({})});
  EXPECT_TRUE(std::isnan(
      strategy->Reduce(ReduceOp::kMean, none, {0}).value().scalar<float>()));
}

TEST(ReplicaReduceTest, InvalidAxesAreRejected) {
  const auto strategy = MakeTestStrategy(2);
  const PerReplica values({Floats({1, 2}), Floats({5, 6})});
  for (const std::vector<int64_t>& axes :
       std::vector<std::vector<int64_t>>{{1}, {-2}, {0, -1}}) {
    EXPECT_THAT(strategy->Reduce(ReduceOp::kSum, values, axes),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(
      strategy->Reduce(ReduceOp::kMax, values, {0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the max")));
}

TEST(ReplicaGatherTest, ConcatenatesReplicas) {
  const auto strategy = MakeTestStrategy(2);
  const PerReplica values({Tensor::FromValues<float>({2, 1}, {1, 3}),
                           Tensor::FromValues<float>({2, 2}, {7, 8, 9, 10})});
  ASSERT_OK_AND_ASSIGN(const Tensor columns, strategy->Gather(values, -1));
  EXPECT_EQ(columns.shape(), (Shape{2, 3}));
  EXPECT_THAT(Values(columns), ElementsAre(1, 7, 8, 3, 9, 10));
  EXPECT_THAT(strategy->Gather(values, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("replica 0 has float32[2,1]"),
                             HasSubstr("replica 1 has float32[2,2]"))));
  ASSERT_OK_AND_ASSIGN(
      const Tensor rows,
      strategy->Gather(PerReplica({Floats({}), Floats({4, 5})}), 0));
  EXPECT_THAT(Values(rows), ElementsAre(4, 5));
  const PerReplica scalars({Tensor::Scalar(1.0f), Tensor::Scalar(2.0f)});
  EXPECT_THAT(strategy->Gather(scalars, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DistributeValuesTest, EveryReplicaHasItsOwn) {
  const auto strategy = MakeTestStrategy(3);
  ASSERT_OK_AND_ASSIGN(
      const PerReplica values,
      strategy->DistributeValuesFromFunction(
          [](const ValueContext& context) -> absl::StatusOr<Tensor> {
            return Tensor::Scalar<int32_t>(context.replica_id_in_sync_group +
                                           10 * context.num_replicas_in_sync);
          }));
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(values[r].scalar<int32_t>(), 30 + r);
  }
  EXPECT_THAT(strategy->DistributeValuesFromFunction(
                  [](const ValueContext&) -> absl::StatusOr<Tensor> {
                    return absl::DataLossError("no value");
                  }),
              StatusIs(absl::StatusCode::kDataLoss, "no value"));
}

TEST(SeveralWorkersTest, ReductionsAndGathersAreOverAllOfThem) {
  const auto workers = MakeTestWorkers(2, 2);
  const auto values = [](int worker) {
    const float base = static_cast<float>(4 * worker);
    return PerReplica({Floats({base + 1, base + 2}), Floats({base + 3})});
  };
  for (const auto& mean :
       OnAll<Tensor>(workers, [&](int worker, TestStrategy&strategy) {
         return strategy.Reduce(ReduceOp::kMean, values(worker), {0});
       })) {
    ASSERT_OK(mean);
    EXPECT_THAT(Values(*mean), ElementsAre(4));
  }
  for (const auto& gathered :
       OnAll<Tensor>(workers, [&](int worker, TestStrategy&strategy) {
         return strategy.Gather(values(worker), 0);
       })) {
    ASSERT_OK(gathered);
    EXPECT_THAT(Values(*gathered), ElementsAre(1, 2, 3, 5, 6, 7));
  }
  const auto step =
      StepFunction::Of("step", [](const ReplicaContext& replica, Value x) {
        return replica.AllGather(
            x * Cast(replica.replica_id_in_sync_group(), DType::kFloat32), 0);
      });
  for (const auto& results : OnAll<std::vector<PerReplica>>(
           workers, [&](int worker, TestStrategy&strategy) {
             return strategy.Run(step, {values(worker)});
           })) {
    ASSERT_OK(results);
    EXPECT_THAT(Values((*results)[0][1]),
                ElementsAre(0, 0, 3, 2 * 5, 2 * 6, 3 * 7));
  }
}

// A custom loop that trains y = sigmoid(x w + b) by gradients of the loss
// averaged over the global batch.
class CustomLoop {
 public:
  explicit CustomLoop(TestStrategy* strategy) : strategy_(strategy) {
    EXPECT_OK(strategy->variables().SetOptimizer(Sgd({.learning_rate = 0.5})));
    const auto w = CreateVariable(*strategy, "w", {1, 1});
    const auto b = CreateVariable(*strategy, "b", {1});
    EXPECT_OK(w);
    EXPECT_OK(b);
    w_ = *w;
    b_ = *b;
  }

  StepFunction Step(int64_t global_batch_size) const {
    return StepFunction::Of("step", [=, this](Value x, Value y) {
      const Loss loss = BinaryCrossentropy(
          {.from_logits = true, .reduction = Reduction::kNone});
      GraphBuilder& builder = *x.builder();
      // The rows that are dropped depend on their positions.
      const Value kept =
          Cast(DropoutMask(StepSeed(builder), x, 0.8), x.dtype());
      const Value logits =
          MatMul(x * kept, w_.Read(builder)) + b_.Read(builder);
      const Value average = ComputeAverageLoss(
          loss(y, logits), {.global_batch_size = global_batch_size});
      const auto gradients = VariableGradients(average, {"w", "b"});
      ApplyGradient(w_.handle(), gradients[0].dense);
      ApplyGradient(b_.handle(), gradients[1].dense);
      return average;
    });
  }

  // Makes one pass over the data; the last batch is not full.
  std::vector<float> Train(const Dataset& data, int64_t global_batch_size) {
    const StepFunction step = Step(global_batch_size);
    std::vector<float> losses;
    const auto distributed = strategy_->DistributeDataset(data);
    EXPECT_OK(distributed);
    if (!distributed.ok()) return losses;
    const auto iterator = distributed->MakeIterator();
    EXPECT_OK(iterator);
    std::vector<ReplicaBatch> batch;
    while ((*iterator)->Next(&batch).value()) {
      const auto results = strategy_->Run(step, batch);
      EXPECT_OK(results);
      if (!results.ok()) break;
      const auto loss = strategy_->Reduce(ReduceOp::kSum, (*results)[0]);
      EXPECT_OK(loss);
      losses.push_back(loss->scalar<float>());
    }
    return losses;
  }

  std::vector<float> Weights() const {
    return {w_.Read().value().scalar<float>(),
            b_.Read().value().scalar<float>()};
  }

 private:
  TestStrategy* const strategy_;
  DistributedVariable w_;
  DistributedVariable b_;
};

Dataset Examples() {
  std::vector<float> x;
  std::vector<float> y;
  for (int i = 0; i < 13; ++i) {
    x.push_back(static_cast<float>(i % 5) - 2);
    y.push_back(i % 5 > 2 ? 1 : 0);
  }
  return Dataset::FromTensorSlices({Column(x), Column(y)}).Batch(4);
}

TEST(CustomLoopTest, SeveralReplicasTrainAsOneDoes) {
  const auto one = MakeTestStrategy(1);
  CustomLoop alone(one.get());
  const std::vector<float> wanted_losses = alone.Train(Examples(), 4);
  const std::vector<float> wanted = alone.Weights();
  ASSERT_EQ(wanted_losses.size(), 4u);
  EXPECT_LT(wanted_losses[2], wanted_losses[0]);
  for (const int replica_count : {2, 3}) {
    SCOPED_TRACE(replica_count);
    const auto strategy = MakeTestStrategy(replica_count);
    CustomLoop loop(strategy.get());
    const std::vector<float> losses = loop.Train(Examples(), 4);
    ASSERT_EQ(losses.size(), wanted_losses.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], wanted_losses[i], 1e-5) << i;
    }
    const std::vector<float> weights = loop.Weights();
    EXPECT_NEAR(weights[0], wanted[0], 1e-5);
    EXPECT_NEAR(weights[1], wanted[1], 1e-5);
    // All copies are equal.
    for (const char* name : {"w", "b"}) {
      for (int r = 1; r < replica_count; ++r) {
        EXPECT_TRUE(
            BitwiseEqual(strategy->variables().copy(r).Read(name).value(),
                         strategy->variables().copy(0).Read(name).value()));
      }
    }
  }
}

TEST(CustomLoopTest, AReplicaWithoutRowsDoesNotCount) {
  const auto strategy = MakeTestStrategy(2);
  EXPECT_OK(strategy->variables().SetOptimizer(Sgd({.learning_rate = 1})));
  ASSERT_OK_AND_ASSIGN(const DistributedVariable w,
                       CreateVariable(*strategy, "w", {}));
  ASSERT_OK_AND_ASSIGN(
      const DistributedDataset data,
      strategy->DistributeDataset(
          Dataset::FromTensorSlices({Floats({1, 2, 3})}).Batch(2)));
  ASSERT_OK_AND_ASSIGN(const auto iterator, data.MakeIterator());
  // Each replica contributes a gradient of 1, independent of its rows.
  const auto step = StepFunction::Of("step", [&](Value x) {
    const Value loss = w.Read(*x.builder()) + Sum(x) * 0.0;
    ApplyGradient(w.handle(), VariableGradients(loss, {"w"})[0].dense);
  });
  std::vector<ReplicaBatch> batch;
  for (const float wanted : {-2.0f, -3.0f}) {
    ASSERT_OK_AND_ASSIGN(const bool has_data, iterator->Next(&batch));
    ASSERT_TRUE(has_data);
    ASSERT_OK(strategy->Run(step, batch));
    EXPECT_EQ(w.Read().value().scalar<float>(), wanted);
  }
}

TEST(CustomLoopTest, EachReplicaMayHaveItsOwnInput) {
  const auto strategy = MakeTestStrategy(2);
  ASSERT_OK_AND_ASSIGN(
      const DistributedDataset data,
      strategy->DistributeDatasetsFromFunction(
          [](const InputContext& context) -> absl::StatusOr<Dataset> {
            const auto size = context.GetPerReplicaBatchSize(4);
            if (!size.ok()) return size.status();
            return Dataset::Range(8).Batch(*size);
          }));
  ASSERT_OK_AND_ASSIGN(const auto iterator, data.MakeIterator());
  std::vector<ReplicaBatch> batch;
  ASSERT_OK_AND_ASSIGN(const bool has_data, iterator->Next(&batch));
  ASSERT_TRUE(has_data);
  const auto step = StepFunction::Of("sum", [](Value x) { return Sum(x); });
  ASSERT_OK_AND_ASSIGN(const auto sums, strategy->Run(step, batch));
  EXPECT_EQ(sums[0][0].scalar<int64_t>(), 0 + 1);
  EXPECT_EQ(sums[0][1].scalar<int64_t>(), 2 + 3);
}

}  // namespace
}  // namespace muster
