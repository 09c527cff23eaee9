// Tests replicas on simulated GPUs whose steps begin before the previous step
// is done.

#include "common/learn/strategy/synchronous/synchronous_step_loop.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device_set.h"
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kReplicas = 2;
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr absl::Duration kTimeout = absl::Seconds(60);
const TensorType kScalar{DType::kInt64, Shape()};

// Computes total += x over all rows of all replicas, and 100 / (3 - x). The
// value 3 is an error.
Graph Step() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {DType::kInt64, {Shape::kUnknown}});
  AssignAddVariable({"total", kScalar}, Sum(x));
  builder.AddResult(Sum(builder.Constant(Tensor::Scalar<int64_t>(100)) /
                        (builder.Constant(Tensor::Scalar<int64_t>(3)) - x)));
  return std::move(builder).Build().value();
}

// Returns four steps of two rows.
Dataset RowsFrom(int64_t begin) {
  return Dataset::Range(begin, begin + 8).Batch(2);
}

// One process with two replicas, or two workers with one each, as threads.
struct Worker {
  std::unique_ptr<ReplicaGroup> group;
  std::unique_ptr<MirroredVariableStore> variables;
  std::unique_ptr<StepLoop> loop;
  absl::StatusOr<StepLoop::Outcome> outcome = StepLoop::Outcome();
  // The values that on_step has received.
  std::vector<int64_t> results;
  std::vector<int64_t> totals;

  int64_t Total() { return variables->Read("total")->scalar<int64_t>(); }
};

class SynchronousStepLoopTest : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { ASSERT_OK(UseGpusUnderTest(kReplicas)); }

  bool has_workers() const { return GetParam() > 1; }

  void Make(const Dataset& dataset, bool on_gpus = true) {
    workers_.clear();
    ReplicaDevices devices;
    for (int i = 0; i < kReplicas && on_gpus; ++i) {
      ASSERT_OK_AND_ASSIGN(devices.emplace_back(),
                           DeviceSet::OfProcess().FindDevice(i));
    }
    std::vector<std::unique_ptr<Communicator>> communicators;
    if (has_workers()) communicators = CreateLocalGroup(kReplicas).value();
    for (int i = 0; i < GetParam(); ++i) {
      auto worker = std::make_unique<Worker>();
      ReplicaDevices own = devices;
      if (!has_workers()) {
        ASSERT_OK_AND_ASSIGN(
            worker->group,
            MakeLocalReplicas(kReplicas, {.transports = {.devices = own}}));
      } else {
        if (on_gpus) own = {devices[i]};
        ASSERT_OK_AND_ASSIGN(
            worker->group,
            ReplicaGroup::Create({std::move(communicators[i])},
                                 {.worker_index = i, .worker_count = 2}));
      }
      MakeLoop(dataset, own, worker.get());
      workers_.push_back(std::move(worker));
    }
  }

  void MakeLoop(const Dataset& dataset, const ReplicaDevices& devices,
                Worker* worker) {
    MirroredVariableStore::Copies copies;
    for (Device* const device : devices) {
      ASSERT_OK_AND_ASSIGN(copies.emplace_back(),
                           DeviceVariableStore::Create(device));
    }
    worker->variables = std::make_unique<MirroredVariableStore>(
        worker->group.get(), /*shares_variables=*/false, kTimeout,
        std::move(copies));
    proto::VariableSpec spec;
    spec.set_name("total");
    spec.set_dtype(proto::DT_INT64);
    spec.mutable_shape();
    spec.set_aggregation(proto::AGGREGATION_SUM);
    ASSERT_OK(worker->variables->Create(spec));
    ASSERT_OK_AND_ASSIGN(
        worker->loop,
        SynchronousStepLoop::Create(
            Step(), dataset, LoopKind::kTrain, worker->group.get(),
            worker->variables.get(),
            {.devices = devices, .communication = {.timeout = kTimeout}}));
    EXPECT_EQ(worker->loop->overlapping() != nullptr, !devices.empty());
  }

  void LetOverlap(const std::vector<bool>& lets) {
    for (size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->loop->overlapping()->OverlapWhen(
          [may = lets[i]](int64_t) { return may; });
    }
  }

  // Runs all workers. on_step returns `fails(worker, step)`.
  void Run(int64_t step_count_max,
           const std::function<absl::Status(int, int64_t)>& fails = nullptr) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] {
        Worker& worker = *workers_[i];
        worker.outcome = worker.loop->Run(
            step_count_max, [&](absl::Span<const Tensor> results) {
              const int64_t step = worker.results.size();
              worker.results.push_back(results[0].scalar<int64_t>());
              worker.totals.push_back(worker.Total());
              return fails == nullptr ? absl::OkStatus()
                                      : fails(static_cast<int>(i), step);
            });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<Worker>> workers_;
};

INSTANTIATE_TEST_SUITE_P(Workers, SynchronousStepLoopTest,
                         ::testing::Values(1, 2));

TEST_P(SynchronousStepLoopTest, AStepBeginsBeforeTheOneBeforeIsDone) {
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(4)));
  Run(kAll);
  const std::vector<int64_t> results = workers_[0]->results;
  const std::vector<int64_t> totals = workers_[0]->totals;
  ASSERT_EQ(totals.size(), 4u);
  EXPECT_EQ(totals.back(), 60);
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(4)));
  LetOverlap({true, true});
  Run(kAll);
  for (const auto& worker : workers_) {
    ASSERT_OK(worker->outcome.status());
    EXPECT_EQ(worker->outcome->step_count, 4);
    EXPECT_TRUE(worker->outcome->end_of_data);
    EXPECT_EQ(worker->results, results);
    // Workers agree on overlapping in their first step.
    const int64_t first = has_workers() ? totals[0] : totals[1];
    EXPECT_THAT(worker->totals,
                ElementsAre(first, totals[2], totals[3], totals[3]));
    EXPECT_EQ(worker->loop->seekable()->position().step, 4);
  }
  // The next pass begins with the first element.
  Run(2);
  for (const auto& worker : workers_) {
    ASSERT_OK(worker->outcome.status());
    EXPECT_EQ(worker->Total(), totals[3] + totals[1]);
  }
}

TEST_P(SynchronousStepLoopTest, OneWorkerCanPreventOverlap) {
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(4)));
  Run(kAll);
  const std::vector<int64_t> totals = workers_[0]->totals;
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(4)));
  LetOverlap(has_workers() ? std::vector<bool>{true, false}
                           : std::vector<bool>{false});
  Run(kAll);
  for (const auto& worker : workers_) {
    ASSERT_OK(worker->outcome.status());
    EXPECT_EQ(worker->totals, totals);
  }
}

TEST_P(SynchronousStepLoopTest, ADataErrorCancelsLaterSteps) {
  // The third step contains 3.
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(-2), /*on_gpus=*/false));
  Run(kAll);
  std::vector<absl::Status> on_cpus;
  for (const auto& worker : workers_) {
    on_cpus.push_back(worker->outcome.status());
  }
  const std::vector<int64_t> results = workers_[0]->results;
  const int64_t total = workers_[0]->Total();
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(-2)));
  LetOverlap({true, true});
  Run(kAll);
  int own_error_count = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    EXPECT_EQ(worker.outcome.status().code(), on_cpus[i].code());
    EXPECT_THAT(worker.outcome.status().message(),
                HasSubstr("integer division by zero"));
    own_error_count +=
        worker.outcome.status().message() == on_cpus[i].message() ? 1 : 0;
    EXPECT_EQ(worker.results, results);
    EXPECT_EQ(worker.Total(), total);
  }
  EXPECT_GE(own_error_count, 1);
}

TEST_P(SynchronousStepLoopTest, ACallbackThatCancelsStopsAllWorkers) {
  ASSERT_NO_FATAL_FAILURE(Make(RowsFrom(4)));
  LetOverlap({true, true});
  Run(kAll, [](int worker, int64_t step) {
    return worker == 0 && step == 1 ? absl::CancelledError("enough")
                                    : absl::OkStatus();
  });
  EXPECT_THAT(workers_[0]->outcome,
              StatusIs(absl::StatusCode::kCancelled, "enough"));
  if (has_workers()) {
    ASSERT_OK(workers_[1]->outcome.status());
    EXPECT_TRUE(workers_[1]->outcome->was_stopped);
    EXPECT_EQ(workers_[0]->Total(), workers_[1]->Total());
  }
  // No step is unfinished.
  Run(1);
  for (const auto& worker : workers_) ASSERT_OK(worker->outcome.status());
}

}  // namespace
}  // namespace muster
