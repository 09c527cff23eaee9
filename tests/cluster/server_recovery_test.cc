// Parameter servers are lost and restarted: every variable equals the number of
// steps that are not undone.

#include "coordinator/server_recovery.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/net/rpc/fault_point.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
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

class ServerRecoveryTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/recovery_",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { SetFaults({}); }

  void Connect(const ServerRecovery::Options& recovery = {}) {
    ClusterConnection::Options options;
    ASSERT_OK_AND_ASSIGN(options.partitioner, MakeFixedShardsPartitioner(2));
    options.attempts_per_closure_max = 1000;
    options.recovery = recovery;
    ASSERT_OK_AND_ASSIGN(strategy_, cluster_.Connect(options));
    ASSERT_OK(CreateCounters(strategy_->variables()));
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }

  void CountUndone() {
    coordinator_->OnRollback([this](const RollbackReport& report) {
      undone_count_ += report.undone_count;
      last_checkpoint_ = report.checkpoint;
      ++rollback_count_;
    });
  }

  // Trains until `goal` steps are applied.
  void TrainUpTo(int64_t goal) {
    while (applied() < goal) {
      const int64_t missing = goal - applied();
      for (int64_t i = 0; i < missing; ++i) {
        ASSERT_OK(coordinator_->Schedule(step_, {}, Soon()));
        ++scheduled_count_;
      }
      ASSERT_OK(coordinator_->Join(Soon()));
    }
  }

  // Call only while no step is running.
  int64_t applied() const { return scheduled_count_ - undone_count_; }

  void ExpectCount(int64_t expected) {
    EXPECT_OK(ExpectCounted(strategy_->variables(), expected));
  }

  void Restart(int server) {
    cluster_.KillServer(server);
    cluster_.StartServer(server);
  }

  void AwaitRollback(int count) {
    ASSERT_TRUE(AwaitTrue([&] { return rollback_count_ >= count; }))
        << "rolled back " << rollback_count_ << " times, not " << count;
  }

  TestCluster cluster_{2, 2};
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
  const Function step_ = CountingStep();
  std::string folder_;
  int64_t scheduled_count_ = 0;
  std::atomic<int64_t> undone_count_ = 0;
  std::atomic<int> rollback_count_ = 0;
  std::string last_checkpoint_;
};

TEST_F(ServerRecoveryTest, RollsBackToTheNewestCheckpoint) {
  Connect();
  CountUndone();
  TrainUpTo(40);
  ASSERT_OK_AND_ASSIGN(const std::string prefix,
                       coordinator_->SaveCheckpoint(folder_));
  TrainUpTo(70);
  Restart(1);
  AwaitRollback(1);
  EXPECT_EQ(undone_count_, 30);
  EXPECT_EQ(last_checkpoint_, prefix);
  ExpectCount(40);
  TrainUpTo(100);
  ExpectCount(100);
  EXPECT_EQ(strategy_->Report().recovery_count, 1);
}

TEST_F(ServerRecoveryTest, RestartsFromTheInitialValuesWithoutACheckpoint) {
  Connect();
  CountUndone();
  TrainUpTo(25);
  Restart(0);
  AwaitRollback(1);
  EXPECT_EQ(undone_count_, 25);
  EXPECT_EQ(last_checkpoint_, "");
  ExpectCount(0);
  TrainUpTo(30);
  ExpectCount(30);
}

TEST_F(ServerRecoveryTest, RunningClosuresAreNeitherLostNorAppliedTwice) {
  constexpr uint64_t kSeed = 7;
  RandomStream random(FoldIn(kSeed, "kills"));
  Connect();
  CountUndone();
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round, " of seed ", kSeed));
    if (random.Below(2) == 0) {
      // The servers of the previous round may not have recovered yet.
      coordinator_->SaveCheckpoint(folder_).IgnoreError();
    }
    for (int i = 0; i < 300; ++i) {
      ASSERT_OK(coordinator_->Schedule(step_, {}, Soon()));
      ++scheduled_count_;
    }
    auto& dispatcher = strategy_->connection()->dispatcher();
    const int64_t goal = dispatcher.counters().finished_count +
                         static_cast<int64_t>(random.Below(150));
    ASSERT_TRUE(AwaitTrue([&] {
      return dispatcher.counters().finished_count >= goal;
    })) << dispatcher.counters().finished_count
        << " closures of " << goal << " have finished";
    const int victim = static_cast<int>(random.Below(3));
    if (victim < 2) {
      Restart(victim);
    } else {
      cluster_.KillServer(0);
      cluster_.KillServer(1);
      cluster_.StartServer(1);
      cluster_.StartServer(0);
    }
    if (random.Below(2) == 0) {
      TestWorker& worker = cluster_.worker(static_cast<int>(random.Below(2)));
      worker.Kill();
      worker.Start();
    }
  }
  TrainUpTo(2500);
  ExpectCount(2500);
  EXPECT_GE(rollback_count_, 1);
}

TEST_F(ServerRecoveryTest, WithoutAHandlerARollbackFailsScheduledClosures) {
  Connect();
  TrainUpTo(20);
  ASSERT_OK_AND_ASSIGN(const std::string prefix,
                       coordinator_->SaveCheckpoint(folder_));
  TrainUpTo(30);
  Restart(1);
  absl::Status status;
  while (status.ok()) {
    const auto scheduled = coordinator_->Schedule(step_, {}, Soon());
    status = scheduled.ok() ? coordinator_->Join(Soon()) : scheduled.status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                               AllOf(HasSubstr("ps 1"), HasSubstr(prefix))));
  ExpectCount(20);
  // The coordinator works as before after the failure.
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(coordinator_->Schedule(step_, {}, Soon()));
  }
  ASSERT_OK(coordinator_->Join(Soon()));
  ExpectCount(25);
}

TEST_F(ServerRecoveryTest, SkipsADamagedCheckpoint) {
  Connect();
  CountUndone();
  TrainUpTo(10);
  ASSERT_OK_AND_ASSIGN(const std::string good,
                       coordinator_->SaveCheckpoint(folder_));
  TrainUpTo(20);
  ASSERT_OK_AND_ASSIGN(const std::string bad,
                       coordinator_->SaveCheckpoint(folder_));
  std::filesystem::resize_file(BundleDataPath(bad, 0, 2), 5);
  TrainUpTo(30);
  Restart(0);
  AwaitRollback(1);
  EXPECT_EQ(last_checkpoint_, good);
  ExpectCount(10);
  TrainUpTo(40);
  ExpectCount(40);
}

TEST_F(ServerRecoveryTest, RecoversAServerThatDiesWhileItIsRestored) {
  Connect();
  CountUndone();
  TrainUpTo(10);
  ASSERT_OK(coordinator_->SaveCheckpoint(folder_).status());
  SetFaults({{.point = "ps.while_restoring",
              .occurrence = 1,
              .action = FaultAction::kDelay,
              .delay = absl::Milliseconds(300)}});
  Restart(1);
  ASSERT_TRUE(AwaitTrue([] {
    return FaultPointPassCount("ps.while_restoring") > 0;
  })) << "ps 1 is not being restored";
  Restart(1);
  AwaitRollback(1);
  ExpectCount(10);
  TrainUpTo(50);
  ExpectCount(50);
}

TEST_F(ServerRecoveryTest, AServerThatDoesNotReturnEndsTheJobWithItsName) {
  Connect({.return_timeout = absl::Milliseconds(200)});
  TrainUpTo(10);
  cluster_.KillServer(1);
  const absl::Status status = [&] {
    absl::Status status;
    while (status.ok()) {
      const auto scheduled = coordinator_->Schedule(step_, {}, Soon());
      status = scheduled.ok() ? coordinator_->Join(Soon()) : scheduled.status();
    }
    return status;
  }();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("ps 1"), HasSubstr("sum/part_1"),
                                     HasSubstr("--server_return_timeout"))));
}

TEST_F(ServerRecoveryTest, ReportsTheLastRecoveryAtTheLimit) {
  Connect({.recovery_count_max = 1});
  CountUndone();
  TrainUpTo(10);
  Restart(1);
  AwaitRollback(1);
  TrainUpTo(20);
  Restart(0);
  absl::Status status;
  while (status.ok()) {
    const auto scheduled = coordinator_->Schedule(step_, {}, Soon());
    status = scheduled.ok() ? coordinator_->Join(Soon()) : scheduled.status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                               AllOf(HasSubstr("ps 0"),
                                     HasSubstr("--max_recoveries"))));
}

TEST_F(ServerRecoveryTest, WithoutInitialValuesOrACheckpointTheJobEnds) {
  Connect();
  ASSERT_OK(strategy_->variables().Assign("counter", Tensor::Scalar(0.0f)));
  TrainUpTo(10);
  Restart(1);
  absl::Status status;
  while (status.ok()) {
    const auto scheduled = coordinator_->Schedule(step_, {}, Soon());
    status = scheduled.ok() ? coordinator_->Join(Soon()) : scheduled.status();
  }
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("ps 1"), HasSubstr("no checkpoint"))));
}

}  // namespace
}  // namespace muster
