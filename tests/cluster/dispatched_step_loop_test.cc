// Loops whose batches the coordinator dispatches to workers (evaluation,
// prediction and training on single batches) while workers and servers are
// lost.

#include "coordinator/dispatched_step_loop.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
const VariableHandle kCounter = {"counter", {DType::kFloat32, {}}};

// Adds the counter to each element and returns many copies of the sum: too many
// for an inline result.
constexpr int64_t kCopies = 4096;
Graph ReadingStep() {
  GraphBuilder builder(&BuiltinOps(), "read");
  const Value x = builder.Parameter("x", {DType::kInt64, {Shape::kUnknown}});
  const Value sum = Cast(x, DType::kFloat32) + ReadVariable(builder, kCounter);
  builder.AddResult(ExpandDims(sum, 1) + builder.Constant(Tensor::Full(
                                             DType::kFloat32, {kCopies}, 0)));
  return std::move(builder).Build().value();
}

// Returns the sum of a batch of rows.
constexpr int64_t kColumns = 1024;
Graph SummingStep() {
  GraphBuilder builder(&BuiltinOps(), "sum");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, kColumns}});
  builder.AddResult(Sum(x));
  return std::move(builder).Build().value();
}

// Increments the counter and returns its element.
Graph CountingStep() {
  GraphBuilder builder(&BuiltinOps(), "count");
  const Value x = builder.Parameter("x", {DType::kInt64, {Shape::kUnknown}});
  AssignAddVariable(kCounter, builder.Constant(Tensor::Scalar(1.0f)));
  builder.AddResult(Identity(x));
  return std::move(builder).Build().value();
}

class DispatchedStepLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    ClusterConnection::Options options;
    options.attempts_per_closure_max = 1000;
    ASSERT_OK_AND_ASSIGN(strategy_, cluster_.Connect(options));
    proto::VariableSpec spec;
    spec.set_name(kCounter.name);
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_shape();
    spec.mutable_initializer()->mutable_constant()->set_value(0);
    ASSERT_OK(strategy_->variables().Create(spec));
  }

  std::unique_ptr<StepLoop> Loop(const Graph& step, const Dataset& data,
                                 LoopKind kind) {
    auto loop = strategy_->CreateLoop(step, data, kind);
    EXPECT_OK(loop.status());
    return *std::move(loop);
  }
  int64_t Finished() const {
    return strategy_->connection()->dispatcher().counters().finished_count;
  }
  float Counter() {
    const absl::StatusOr<Tensor> counter =
        strategy_->variables().Read(kCounter.name);
    EXPECT_OK(counter.status());
    return counter.ok() ? counter->scalar<float>() : -1;
  }

  TestCluster cluster_{2, 2};
  std::unique_ptr<ParameterServerStrategy> strategy_;
};

TEST_F(DispatchedStepLoopTest, RunsEachBatchOnceInOrderWhileWorkersDie) {
  constexpr int64_t kBatches = 200;
  const auto loop = Loop(ReadingStep(), Dataset::Range(kBatches).Batch(1),
                         LoopKind::kPredict);
  for (int pass = 0; pass < 2; ++pass) {
    const int64_t before = Finished();
    std::vector<float> seen;
    const auto on_step = [&](absl::Span<const Tensor> results) {
      EXPECT_EQ(results[0].element_count(), kCopies);
      seen.push_back(results[0].flat<float>().back());
      if (seen.size() == 50) cluster_.worker(pass).Kill();
      if (seen.size() == 120) cluster_.worker(pass).Start();
      return absl::OkStatus();
    };
    ASSERT_OK_AND_ASSIGN(const StepLoop::Outcome outcome,
                         loop->Run(kAll, on_step));
    EXPECT_TRUE(outcome.end_of_data);
    EXPECT_EQ(outcome.step_count, kBatches);
    std::vector<float> wanted(kBatches);
    std::iota(wanted.begin(), wanted.end(), 0.0f);
    EXPECT_EQ(seen, wanted);
    EXPECT_EQ(Finished() - before, kBatches);
  }
}

TEST_F(DispatchedStepLoopTest, ContinuesWhereItStopped) {
  const auto loop =
      Loop(ReadingStep(), Dataset::Range(5).Batch(1), LoopKind::kEvaluate);
  std::vector<float> seen;
  const auto on_step = [&](absl::Span<const Tensor> results) {
    seen.push_back(results[0].flat<float>()[0]);
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(StepLoop::Outcome outcome, loop->Run(3, on_step));
  EXPECT_FALSE(outcome.end_of_data);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
  ASSERT_OK_AND_ASSIGN(outcome, loop->Run(3, on_step));
  EXPECT_TRUE(outcome.end_of_data);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(DispatchedStepLoopTest, StopsBetweenStepsAndUsesEachBatchOnce) {
  // Each batch is so large that at most four are sent before the first result
  // is taken, regardless of the speed of the workers. A pass therefore has at
  // least two stops.
  constexpr int64_t kBatches = 12;
  const int64_t batch_rows =
      static_cast<int64_t>(DispatchedStepLoop::Options().bytes_ahead_max / 4) /
      (kColumns * SizeOf(DType::kFloat32));
  Tensor numbers(DType::kFloat32, {kBatches * batch_rows, kColumns});
  for (int64_t i = 0; i < kBatches; ++i) {
    numbers.mutable_flat<float>()[i * batch_rows * kColumns] =
        static_cast<float>(i);
  }
  const auto loop = Loop(SummingStep(),
                         Dataset::FromTensorSlices({numbers}).Batch(batch_rows),
                         LoopKind::kEvaluate);
  ASSERT_NE(loop->stoppable(), nullptr);
  bool is_to_stop = false;
  loop->stoppable()->StopWhen([&] { return is_to_stop; });
  for (int pass = 0; pass < 2; ++pass) {
    std::multiset<float> seen;
    const auto on_step = [&](absl::Span<const Tensor> results) {
      seen.insert(results[0].scalar<float>());
      is_to_stop = true;
      return absl::OkStatus();
    };
    StepLoop::Outcome outcome;
    int stop_count = 0;
    while (!outcome.end_of_data) {
      is_to_stop = false;
      ASSERT_OK_AND_ASSIGN(outcome, loop->Run(kAll, on_step));
      EXPECT_NE(outcome.was_told_to_stop, outcome.end_of_data);
      stop_count += outcome.was_told_to_stop;
    }
    EXPECT_GE(stop_count, 2);
    std::multiset<float> wanted;
    for (int64_t i = 0; i < kBatches; ++i) wanted.insert(i);
    EXPECT_EQ(seen, wanted);
  }
}

TEST_F(DispatchedStepLoopTest, TrainsOnEachBatchOnceIfBatchesAreDispatched) {
  constexpr int64_t kBatches = 50;
  ParameterServerStrategy strategy(strategy_->connection(),
                                   {.dispatches_batches = true}, Clock::Real());
  // C++ functions cannot be sent to workers.
  const Dataset data = Dataset::Range(kBatches).Batch(1).MapElements(
      [](Element element) -> absl::StatusOr<Element> { return element; },
      {{DType::kInt64, {Shape::kUnknown}}});
  ASSERT_OK_AND_ASSIGN(
      const auto loop,
      strategy.CreateLoop(CountingStep(), data, LoopKind::kTrain));
  ASSERT_NE(loop->stoppable(), nullptr);
  bool is_to_stop = false;
  loop->stoppable()->StopWhen([&] { return is_to_stop; });
  for (int pass = 0; pass < 2; ++pass) {
    std::multiset<int64_t> seen;
    StepLoop::Outcome outcome;
    while (!outcome.end_of_data) {
      is_to_stop = false;
      ASSERT_OK_AND_ASSIGN(
          outcome, loop->Run(kAll, [&](absl::Span<const Tensor> results) {
            seen.insert(results[0].flat<int64_t>()[0]);
            is_to_stop = seen.size() == 5;
            return absl::OkStatus();
          }));
    }
    EXPECT_EQ(seen.size(), kBatches);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), kBatches);
    EXPECT_EQ(Counter(), kBatches * (pass + 1));
  }
}

TEST_F(DispatchedStepLoopTest, BatchesGoThroughMemoryThatWorkersShare) {
  constexpr int64_t kBatches = 40;
  constexpr int64_t kRows = 64;
  constexpr int64_t kElements = kRows * kColumns;
  Tensor numbers(DType::kFloat32, {kBatches * kRows, kColumns});
  for (int64_t i = 0; i < numbers.element_count(); ++i) {
    numbers.mutable_flat<float>()[i] = static_cast<float>(i / kElements);
  }
  const auto loop =
      Loop(SummingStep(), Dataset::FromTensorSlices({numbers}).Batch(kRows),
           LoopKind::kEvaluate);
  const auto* const sent =
      GetCounter({"muster_rpc_bytes_sent_total",
                  "Bytes of messages that were given to gRPC to be sent."});
  const int64_t sent_before = sent->value();
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<float> sums;
    const auto on_step = [&](absl::Span<const Tensor> results) {
      sums.push_back(results[0].scalar<float>() / kElements);
      return absl::OkStatus();
    };
    ASSERT_OK(loop->Run(kAll, on_step));
    std::vector<float> wanted(kBatches);
    std::iota(wanted.begin(), wanted.end(), 0.0f);
    EXPECT_EQ(sums, wanted);
  }
  EXPECT_LT(sent->value() - sent_before, kBatches * kElements);
  // The memory was offered before worker 0 was restarted, so that worker has
  // not mapped it.
  cluster_.worker(0).Kill();
  cluster_.worker(0).Start();
  cluster_.worker(1).Kill();
  int64_t count = 0;
  ASSERT_OK(loop->Run(kAll, [&](absl::Span<const Tensor> results) {
    EXPECT_EQ(results[0].scalar<float>() / kElements, count++);
    return absl::OkStatus();
  }));
  EXPECT_EQ(count, kBatches);
}

TEST_F(DispatchedStepLoopTest, RestartsFromTheBeginningAfterAnError) {
  std::atomic<bool> is_broken = true;
  const Dataset data =
      Dataset::Range(6)
          .MapElements(
              [&](Element element) -> absl::StatusOr<Element> {
                if (is_broken && element[0].scalar<int64_t>() == 4) {
                  return absl::DataLossError("row 4 is damaged");
                }
                return element;
              },
              {{DType::kInt64, {}}})
          .Batch(1);
  const auto loop = Loop(ReadingStep(), data, LoopKind::kEvaluate);
  const auto ignore = [](absl::Span<const Tensor>) { return absl::OkStatus(); };
  EXPECT_THAT(loop->Run(kAll, ignore),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("row 4")));
  is_broken = false;
  EXPECT_THAT(
      loop->Run(kAll,
                [](absl::Span<const Tensor>) {
                  return absl::InternalError("an error of the callback");
                }),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("callback")));
  ASSERT_OK_AND_ASSIGN(const StepLoop::Outcome outcome,
                       loop->Run(kAll, ignore));
  EXPECT_EQ(outcome.step_count, 6);
}

TEST_F(DispatchedStepLoopTest, TrainsOnEachBatchOnceWhileWorkersDie) {
  constexpr int64_t kBatches = 300;
  const auto loop = Loop(CountingStep(), Dataset::Range(kBatches).Batch(1),
                         LoopKind::kTrainOnBatch);
  int64_t count = 0;
  const auto on_step = [&](absl::Span<const Tensor> results) {
    EXPECT_EQ(results[0].flat<int64_t>()[0], count);
    if (++count % 100 == 50) cluster_.worker(0).Kill();
    if (count % 100 == 80) cluster_.worker(0).Start();
    return absl::OkStatus();
  };
  ASSERT_OK(loop->Run(kAll, on_step).status());
  EXPECT_EQ(count, kBatches);
  EXPECT_EQ(Counter(), kBatches);
}

// Loops that only read variables have nothing to undo.
TEST_F(DispatchedStepLoopTest, ARollbackUndoesOnlyTraining) {
  const auto ignore = [](absl::Span<const Tensor>) { return absl::OkStatus(); };
  const auto train = Loop(CountingStep(), Dataset::Range(30).Batch(1),
                          LoopKind::kTrainOnBatch);
  const auto evaluate =
      Loop(ReadingStep(), Dataset::Range(50).Batch(1), LoopKind::kEvaluate);
  ASSERT_OK(train->Run(kAll, ignore).status());
  ASSERT_OK(evaluate->Run(kAll, ignore).status());
  cluster_.KillServer(0);
  cluster_.StartServer(0);
  absl::StatusOr<StepLoop::Outcome> outcome = StepLoop::Outcome();
  while (outcome.ok()) outcome = evaluate->Run(kAll, ignore);
  ASSERT_OK_AND_ASSIGN(const std::optional<Rollback> rollback,
                       strategy_->recovery()->AwaitRollback(outcome.status()));
  ASSERT_TRUE(rollback.has_value());
  EXPECT_EQ(rollback->undone_step_count, 30);
  EXPECT_EQ(Counter(), 0);
  ASSERT_OK(train->Run(kAll, ignore).status());
  ASSERT_OK(evaluate->Run(kAll, ignore).status());
  EXPECT_EQ(Counter(), 30);
}

}  // namespace
}  // namespace muster
