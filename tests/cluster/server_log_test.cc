// Parameter servers with logs are lost and restarted: training continues, and
// nothing is undone.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/storage/disk.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/function.h"
#include "coordinator/server_recovery.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/client/partitioner.h"
#include "tests/cluster/counters.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(120); }

class ServerLogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/server_log_",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    cluster_.KeepServerLogs(folder_);
    ClusterConnection::Options options;
    ASSERT_OK_AND_ASSIGN(options.partitioner, MakeFixedShardsPartitioner(2));
    options.attempts_per_closure_max = 1000;
    ASSERT_OK_AND_ASSIGN(strategy_, cluster_.Connect(options));
    ASSERT_OK(CreateCounters(strategy_->variables()));
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }

  ServerRecovery& recovery() {
    return static_cast<ServerRecovery&>(*strategy_->recovery());
  }

  void Schedule(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(coordinator_->Schedule(step_, {}, Soon()));
      ++scheduled_count_;
    }
  }

  void AwaitRestored(int64_t count) {
    ASSERT_TRUE(AwaitTrue([&] { return recovery().restored_count() >= count; }))
        << recovery().restored_count() << " of " << count;
  }

  void ExpectEachStepOnce() {
    ASSERT_OK(coordinator_->Join(Soon()));
    EXPECT_OK(ExpectCounted(strategy_->variables(), scheduled_count_));
    EXPECT_EQ(recovery().recovery_count(), 0);
  }

  TestCluster cluster_{2, 2};
  std::string folder_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
  const Function step_ = CountingStep();
  int64_t scheduled_count_ = 0;
};

TEST_F(ServerLogTest, ARestartedServerContinuesWhereItStood) {
  Schedule(50);
  ASSERT_OK(coordinator_->Join(Soon()));
  cluster_.KillServer(1);
  cluster_.StartServer(1);
  AwaitRestored(1);
  Schedule(50);
  ExpectEachStepOnce();
}

TEST_F(ServerLogTest, RunningClosuresAreNeitherLostNorAppliedTwice) {
  constexpr uint64_t kSeed = 7;
  RandomStream random(FoldIn(kSeed, "kills"));
  for (int round = 1; round <= 8; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round, " of seed ", kSeed));
    Schedule(300);
    const int server = static_cast<int>(random.Below(2));
    const int64_t updates =
        cluster_.server(server).service().shard().activity().update_count;
    ASSERT_TRUE(AwaitTrue([&] {
      return cluster_.server(server)
                 .service()
                 .shard()
                 .activity()
                 .update_count >= updates + 20;
    }));
    cluster_.KillServer(server);
    cluster_.StartServer(server);
    AwaitRestored(round);
  }
  ExpectEachStepOnce();
}

TEST_F(ServerLogTest, AllServersMayBeLostAtOnce) {
  Schedule(300);
  for (const int server : {0, 1}) cluster_.KillServer(server);
  for (const int server : {0, 1}) cluster_.StartServer(server);
  AwaitRestored(2);
  Schedule(50);
  ExpectEachStepOnce();
}

TEST_F(ServerLogTest, ASnapshotCanBeSavedAfterItsServerWasRestarted) {
  Schedule(40);
  ASSERT_OK(coordinator_->Join(Soon()));
  VariableStore& variables = strategy_->variables();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<VariableSnapshot> snapshot,
                       variables.TakeSnapshot());
  Schedule(30);
  ASSERT_OK(coordinator_->Join(Soon()));
  cluster_.KillServer(0);
  cluster_.StartServer(0);
  AwaitRestored(1);
  const std::string prefix = absl::StrCat(folder_, "/ckpt");
  const int shard_count = variables.checkpoint_shard_count();
  ASSERT_OK(snapshot->WriteShards(Disk::Real(), prefix, shard_count));
  ASSERT_OK(PublishTensorBundle(Disk::Real(), prefix, shard_count));
  EXPECT_OK(ExpectCounted(variables, 70));
  ASSERT_OK(variables.Restore(prefix, /*values_only=*/false));
  EXPECT_OK(ExpectCounted(variables, 40));
  // The restored values are in the next snapshot of the log.
  scheduled_count_ = 40;
  Schedule(10);
  ExpectEachStepOnce();
}

TEST_F(ServerLogTest, ReadsAndSnapshotsWaitForServers) {
  for (int round = 0; round < 4; ++round) {
    Schedule(100);
    cluster_.KillServer(round % 2);
    std::thread restart([&] { cluster_.StartServer(round % 2); });
    EXPECT_OK(strategy_->variables().Read("sum").status());
    EXPECT_OK(strategy_->variables().TakeSnapshot().status());
    restart.join();
    AwaitRestored(round + 1);
  }
  ExpectEachStepOnce();
}

TEST_F(ServerLogTest, AServerThatLacksUpdatesRollsTrainingBack) {
  Schedule(50);
  ASSERT_OK(coordinator_->Join(Soon()));
  coordinator_->OnRollback([](const RollbackReport&) {});
  const int64_t number = cluster_.server(0).service().log()->log_number();
  ASSERT_TRUE(AwaitTrue([&] {
    return strategy_->connection()->servers().states()[0].log_number == number;
  }));
  cluster_.KillServer(0);
  const std::string path = absl::StrCat(folder_, "/ps-0/segment-000001");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  cluster_.StartServer(0);
  ASSERT_TRUE(AwaitTrue([&] { return recovery().recovery_count() == 1; }));
  ASSERT_OK(coordinator_->Join(Soon()));
  EXPECT_OK(ExpectCounted(strategy_->variables(), 0));
  EXPECT_EQ(recovery().restored_count(), 0);
}

TEST_F(ServerLogTest, WithoutItsLogAServerRollsTrainingBack) {
  Schedule(50);
  ASSERT_OK(coordinator_->Join(Soon()));
  int64_t undone_count = -1;
  coordinator_->OnRollback([&](const RollbackReport& report) {
    undone_count = report.undone_count;
  });
  cluster_.KillServer(0);
  std::filesystem::remove_all(absl::StrCat(folder_, "/ps-0"));
  cluster_.StartServer(0);
  ASSERT_TRUE(AwaitTrue([&] { return recovery().recovery_count() == 1; }));
  ASSERT_OK(coordinator_->Join(Soon()));
  EXPECT_EQ(undone_count, 50);
  EXPECT_EQ(recovery().restored_count(), 0);
  // The server keeps a log again.
  scheduled_count_ = 0;
  Schedule(50);
  ASSERT_OK(coordinator_->Join(Soon()));
  cluster_.KillServer(0);
  cluster_.StartServer(0);
  AwaitRestored(1);
  EXPECT_OK(ExpectCounted(strategy_->variables(), scheduled_count_));
  EXPECT_EQ(recovery().recovery_count(), 1);
}

}  // namespace
}  // namespace muster
