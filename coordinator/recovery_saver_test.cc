#include "coordinator/recovery_saver.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/cluster/task_id.h"
#include "coordinator/server_watch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Saves a store in this process. No server is waiting to exit.
class RecoverySaverTest : public testing::Test {
 protected:
  RecoverySaverTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()),
        missing_(cluster_, {}, &clock_),
        watch_(
            {.cluster = cluster_}, {}, [] {}, &missing_, Clock::Real()),
        saver_({.checkpoint_dir = folder_.string(),
                .checkpoint_interval = absl::Minutes(1)},
               {.servers = &servers_,
                .clock = &clock_,
                .take_snapshot =
                    [this] {
                      ++snapshot_count_;
                      return store_.TakeSnapshot();
                    },
                .has_progressed = [this] { return has_progressed_; },
                .shard_count = [] { return 1; }}) {
    proto::VariableSpec spec;
    spec.set_name("x");
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_initializer()->mutable_constant()->set_value(3);
    EXPECT_OK(store_.Create(spec));
  }
  ~RecoverySaverTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_;
  SimulatedClock clock_;
  const ClusterSpec cluster_ =
      ClusterSpec::FromLists(
          {{TaskType::kWorker, {"h0:1"}}, {TaskType::kPs, {"h1:1"}}})
          .value();
  MissingTasks missing_;
  ServerWatch watch_;
  ServerCopies servers_{1, {.watch = &watch_}};
  LocalVariableStore store_;
  int snapshot_count_ = 0;
  bool has_progressed_ = true;
  RecoverySaver saver_;
};

TEST_F(RecoverySaverTest, SavesWhenTheIntervalHasPassed) {
  saver_.SaveIfDue(/*at_once=*/false);
  EXPECT_EQ(snapshot_count_, 0);
  clock_.Advance(absl::Minutes(1));
  saver_.SaveIfDue(/*at_once=*/false);
  EXPECT_EQ(snapshot_count_, 1);
  saver_.AwaitWrite();
  const auto prefix = LatestCheckpoint(Disk::Real(), folder_.string());
  ASSERT_OK(prefix);
  ASSERT_OK(store_.Assign("x", Tensor::Scalar<float>(5)));
  ASSERT_OK(store_.Restore(*prefix, /*values_only=*/true));
  EXPECT_EQ(store_.Read("x")->scalar<float>(), 3);

  saver_.SaveIfDue(/*at_once=*/false);
  EXPECT_EQ(snapshot_count_, 1);
}

TEST_F(RecoverySaverTest, SavesAtOnceIfTrainingHasProgressed) {
  saver_.SaveIfDue(/*at_once=*/true);
  EXPECT_OK(LatestCheckpoint(Disk::Real(), folder_.string()));
  has_progressed_ = false;
  saver_.SaveIfDue(/*at_once=*/true);
  EXPECT_EQ(snapshot_count_, 1);
}

TEST_F(RecoverySaverTest, CallsThePreemptionSaverForNoOtherReason) {
  bool was_called = false;
  saver_.SetPreemptionSaver([&was_called] {
    was_called = true;
    return absl::OkStatus();
  });
  saver_.NoteEnding(/*has_loop=*/true);
  saver_.SaveIfDue(/*at_once=*/true);
  EXPECT_FALSE(was_called);
}

}  // namespace
}  // namespace muster
