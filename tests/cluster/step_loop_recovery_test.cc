// The loop of Fit() while parameter servers are lost: it reports exactly the
// steps that the variables count, before and after a rollback.

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/variable_ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/strategy.h"
#include "common/net/rpc/fault_point.h"
#include "coordinator/cluster_connection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMany = 1'000'000;
const VariableHandle kCounter = {"counter", {DType::kFloat32, {}}};

// Increments the counter and returns its element.
Graph CountingStep() {
  GraphBuilder builder(&BuiltinOps(), "count");
  const Value x = builder.Parameter("x", {DType::kInt64, {}});
  AssignAddVariable(kCounter, builder.Constant(Tensor::Scalar(1.0f)));
  builder.AddResult(Identity(x));
  return std::move(builder).Build().value();
}

class StepLoopRecoveryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    // Tests may set the interval, so that a checkpoint is due.
    ClusterConnection::Options options;
    options.recovery.checkpoint_dir = folder_ + "/recovery";
    options.recovery.checkpoint_interval = save_interval();
    ASSERT_OK_AND_ASSIGN(strategy_, cluster_.Connect(options));
    proto::VariableSpec spec;
    spec.set_name(kCounter.name);
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_shape();
    spec.mutable_initializer()->mutable_constant()->set_value(0);
    ASSERT_OK(strategy_->variables().Create(spec));
    ASSERT_OK_AND_ASSIGN(
        loop_,
        strategy_->CreateLoop(CountingStep(), Dataset::Range(1000).Repeat(),
                              LoopKind::kTrain));
    strategy_->recovery()->SetProgressSource(
        [this] { return std::any(reported_count_); });
  }

  void TearDown() override { SetFaults({}); }

  virtual absl::Duration save_interval() const { return absl::Hours(1); }

  void StopWhen(std::function<bool()> is_to_stop) {
    ASSERT_NE(loop_->stoppable(), nullptr);
    loop_->stoppable()->StopWhen(std::move(is_to_stop));
  }

  void ExpectCounted(int64_t expected) {
    ASSERT_OK_AND_ASSIGN(const Tensor counter,
                         strategy_->variables().Read(kCounter.name));
    EXPECT_EQ(counter.scalar<float>(), static_cast<float>(expected));
  }

  absl::Status Save() {
    const std::string prefix = folder_ + "/ckpt-1";
    absl::Status status = strategy_->variables().SaveShards(prefix, 2);
    status.Update(PublishTensorBundle(Disk::Real(), prefix, 2));
    return status;
  }

  const std::string folder_ = absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  TestCluster cluster_{2, 2};
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<StepLoop> loop_;
  int64_t reported_count_ = 0;
};

TEST_F(StepLoopRecoveryTest, StopsBetweenStepsAndReportsAllOfThem) {
  StopWhen([this] { return reported_count_ >= 20; });
  ASSERT_OK_AND_ASSIGN(const StepLoop::Outcome outcome,
                       loop_->Run(kMany, [this](absl::Span<const Tensor>) {
                         ++reported_count_;
                         return absl::OkStatus();
                       }));
  EXPECT_TRUE(outcome.was_told_to_stop);
  EXPECT_EQ(outcome.step_count, reported_count_);
  EXPECT_GE(reported_count_, 20);
  ExpectCounted(reported_count_);
}

TEST_F(StepLoopRecoveryTest, ResumesAfterTheStepsOfTheCheckpoint) {
  constexpr int64_t kSavedAt = 30;
  constexpr int64_t kGoal = 2500;
  const auto on_step = [this](absl::Span<const Tensor>) -> absl::Status {
    ++reported_count_;
    // Hundreds of later steps have been applied or are running at this time.
    if (reported_count_ == kSavedAt) return Save();
    if (reported_count_ == 500) {
      cluster_.KillServer(1);
      cluster_.StartServer(1);
    }
    return absl::OkStatus();
  };
  const auto failed = loop_->Run(kMany, on_step);
  ASSERT_FALSE(failed.ok());
  ASSERT_OK_AND_ASSIGN(const std::optional<Rollback> rollback,
                       strategy_->recovery()->AwaitRollback(failed.status()));
  ASSERT_TRUE(rollback.has_value());
  EXPECT_EQ(std::any_cast<int64_t>(rollback->progress), kSavedAt);
  EXPECT_GT(rollback->undone_step_count, 0);
  reported_count_ = kSavedAt;
  ASSERT_OK_AND_ASSIGN(
      const StepLoop::Outcome outcome,
      loop_->Run(kGoal - reported_count_, [this](absl::Span<const Tensor>) {
        ++reported_count_;
        return absl::OkStatus();
      }));
  EXPECT_EQ(outcome.step_count, kGoal - kSavedAt);
  EXPECT_EQ(reported_count_, kGoal);
  ExpectCounted(kGoal);
}

class SavingStepLoopTest : public StepLoopRecoveryTest {
 protected:
  absl::Duration save_interval() const override { return absl::ZeroDuration(); }

  bool IsPublished() const {
    return std::filesystem::exists(folder_ + "/recovery/checkpoint");
  }
};

TEST_F(SavingStepLoopTest, TrainsWhileItsCheckpointIsWritten) {
  SetFaults({{.point = "ps.while_saving",
              .occurrence = 1,
              .action = FaultAction::kDelay,
              .delay = absl::Seconds(1)}});
  int64_t count_during_save = 0;
  StopWhen([this] { return IsPublished(); });
  ASSERT_OK_AND_ASSIGN(const StepLoop::Outcome outcome,
                       loop_->Run(kMany, [&](absl::Span<const Tensor>) {
                         ++reported_count_;
                         const bool is_saving =
                             FaultPointPassCount("ps.while_saving") > 0 &&
                             !IsPublished();
                         count_during_save += is_saving ? 1 : 0;
                         return absl::OkStatus();
                       }));
  EXPECT_TRUE(outcome.was_told_to_stop);
  EXPECT_GT(count_during_save, 0);
  ExpectCounted(reported_count_);
  // Checks that the checkpoint can be restored.
  cluster_.KillServer(1);
  cluster_.StartServer(1);
  absl::StatusOr<StepLoop::Outcome> next = outcome;
  StopWhen([] { return false; });
  while (next.ok()) {
    next = loop_->Run(100, [this](absl::Span<const Tensor>) {
      ++reported_count_;
      return absl::OkStatus();
    });
  }
  ASSERT_OK_AND_ASSIGN(const std::optional<Rollback> rollback,
                       strategy_->recovery()->AwaitRollback(next.status()));
  ASSERT_TRUE(rollback.has_value());
  EXPECT_THAT(rollback->checkpoint, HasSubstr("/recovery/"));
}

// Each rollback point has the history of training, which grows with the epochs.
TEST_F(SavingStepLoopTest, KeepsNoMoreStatesThanCheckpoints) {
  constexpr int kCheckpoints = 30;
  std::set<std::string> seen;
  size_t count_max = 0;
  StopWhen([&] { return seen.size() >= kCheckpoints; });
  ASSERT_OK(loop_->Run(kMany, [&](absl::Span<const Tensor>) {
    ++reported_count_;
    for (const auto& file :
         std::filesystem::directory_iterator(folder_ + "/recovery")) {
      if (file.path().extension() == ".index") seen.insert(file.path().stem());
    }
    count_max = std::max(
        count_max, strategy_->connection()->recovery().rollback_point_count());
    return absl::OkStatus();
  }));
  // The initial values, two published checkpoints, one that is being written,
  // and one that was just deleted.
  EXPECT_LE(count_max, 5u);
}

// The rollback has undone the steps in the checkpoint. Restoring it would apply
// them a second time.
TEST_F(SavingStepLoopTest, DiscardsACheckpointThatWasWrittenDuringARollback) {
  SetFaults({{.point = "coordinator.after_save",
              .occurrence = 1,
              .action = FaultAction::kDelay,
              .delay = absl::Seconds(4)}});
  const auto count = [this](absl::Span<const Tensor>) {
    ++reported_count_;
    return absl::OkStatus();
  };
  StopWhen([] { return FaultPointPassCount("coordinator.after_save") > 0; });
  ASSERT_OK(loop_->Run(kMany, count).status());
  cluster_.KillServer(1);
  cluster_.StartServer(1);
  StopWhen([] { return false; });
  absl::Status failure;
  while (failure.ok()) failure = loop_->Run(1, count).status();
  ASSERT_OK_AND_ASSIGN(const std::optional<Rollback> rollback,
                       strategy_->recovery()->AwaitRollback(failure));
  ASSERT_TRUE(rollback.has_value());
  EXPECT_EQ(rollback->checkpoint, "");
  // The destructor of a loop waits for the write.
  loop_ = nullptr;
  EXPECT_FALSE(IsPublished());
  ExpectCounted(0);
}

}  // namespace
}  // namespace muster
