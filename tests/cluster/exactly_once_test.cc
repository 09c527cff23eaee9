// Every closure adds one to all counters, regardless of failures of workers and
// connections.

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/rpc/identity.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/function.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/client/partitioner.h"
#include "tests/cluster/counters.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time Soon() { return absl::Now() + absl::Seconds(120); }

class ExactlyOnceTest : public testing::Test {
 protected:
  void SetUp() override {
    ClusterConnection::Options options;
    ASSERT_OK_AND_ASSIGN(options.partitioner, MakeFixedShardsPartitioner(2));
    options.attempts_per_closure_max = 1000;
    options.recovery.return_timeout = absl::ZeroDuration();
    ASSERT_OK_AND_ASSIGN(strategy_, cluster_.Connect(options));
    ASSERT_OK(CreateCounters(strategy_->variables()));
  }

  TestCluster cluster_{3, 2};
  std::unique_ptr<ParameterServerStrategy> strategy_;
};

TEST_F(ExactlyOnceTest, EveryClosureCountsOnceWithoutFailures) {
  ClusterCoordinator coordinator(*strategy_);
  const Function step = CountingStep();
  for (int i = 0; i < 500; ++i) {
    ASSERT_OK(coordinator.Schedule(step, {}));
  }
  ASSERT_OK(coordinator.Join(Soon()));
  EXPECT_OK(ExpectCounted(strategy_->variables(), 500));
}

TEST_F(ExactlyOnceTest, EveryClosureCountsOnceWhileWorkersDie) {
  constexpr uint64_t kSeed = 20;
  RandomStream random(FoldIn(kSeed, "kills"));
  ClusterCoordinator coordinator(*strategy_);
  const Function step = CountingStep();
  int scheduled_count = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 150; ++i) {
      ASSERT_OK(coordinator.Schedule(step, {}));
      ++scheduled_count;
    }
    // Waits for some progress, so that workers are lost while closures are
    // running.
    const ClosureDispatcher& dispatcher = strategy_->connection()->dispatcher();
    const int64_t goal = dispatcher.counters().finished_count +
                         static_cast<int64_t>(random.Below(100));
    ASSERT_TRUE(AwaitTrue([&] {
      return dispatcher.counters().finished_count >= goal;
    })) << dispatcher.counters().finished_count
        << " closures of " << goal << " have finished";
    TestWorker& victim = cluster_.worker(static_cast<int>(random.Below(3)));
    if (victim.running()) victim.Kill();
    for (int i = 0; i < 3; ++i) {
      if (!cluster_.worker(i).running() && random.Below(2) == 0) {
        cluster_.worker(i).Start();
      }
    }
    if (!cluster_.worker(0).running() && !cluster_.worker(1).running() &&
        !cluster_.worker(2).running()) {
      cluster_.worker(0).Start();
    }
  }
  ASSERT_OK(coordinator.Join(Soon()));
  EXPECT_OK(ExpectCounted(strategy_->variables(), scheduled_count));
  EXPECT_GT(strategy_->Report().retry_count, 0);
}

TEST_F(ExactlyOnceTest, ALostServerEndsTheJobWithItsName) {
  ClusterCoordinator coordinator(*strategy_);
  const Function step = CountingStep();
  for (int i = 0; i < 20; ++i) ASSERT_OK(coordinator.Schedule(step, {}));
  ASSERT_OK(coordinator.Join(Soon()));

  const uint64_t incarnation = cluster_.server(1).incarnation();
  const absl::Time killed = absl::Now();
  cluster_.KillServer(1);
  absl::Status status;
  while (status.ok()) {
    const auto scheduled = coordinator.Schedule(step, {}, Soon());
    status = scheduled.ok() ? coordinator.Join(Soon()) : scheduled.status();
  }
  EXPECT_LT(absl::Now() - killed, absl::Seconds(30));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("ps 1"),
                                     HasSubstr(IncarnationString(incarnation)),
                                     HasSubstr("sum/part_1"))));
  // The error is permanent.
  EXPECT_THAT(coordinator.Schedule(step, {}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ExactlyOnceTest, ARestartedServerIsNotMistakenForTheLostOne) {
  ClusterCoordinator coordinator(*strategy_);
  const Function step = CountingStep();
  ASSERT_OK(coordinator.Schedule(step, {}));
  ASSERT_OK(coordinator.Join(Soon()));
  cluster_.KillServer(0);
  cluster_.StartServer(0);
  absl::Status status;
  while (status.ok()) {
    const auto scheduled = coordinator.Schedule(step, {}, Soon());
    status = scheduled.ok() ? coordinator.Join(Soon()) : scheduled.status();
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps 0"));
}

}  // namespace
}  // namespace muster
