// A later coordinator continues the training of an earlier one with the workers
// and servers that still run.

#include <any>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/train/checkpoints/training_state.h"
#include "common/net/process/exit_code.h"
#include "common/net/status/run_timeline.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "coordinator/update_rounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_state.pb.h"
#include "proto/variable.pb.h"
#include "ps/parameter_service.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const VariableHandle kCounter = {"counter", {DType::kFloat32, {}}};

Graph CountingStep() {
  GraphBuilder builder(&BuiltinOps(), "count");
  const Value x = builder.Parameter("x", {DType::kInt64, {}});
  AssignAddVariable(kCounter, builder.Constant(Tensor::Scalar(1.0f)));
  builder.AddResult(Identity(x));
  return std::move(builder).Build().value();
}

const VariableHandle kHalved = {"halved", {DType::kFloat32, {}}};

// Its gradient is the variable itself. With SGD and a learning rate of 0.5 each
// update halves the variable, if the gradients were computed with its value
// before the update.
Graph HalvingStep() {
  GraphBuilder builder(&BuiltinOps(), "halve");
  const Value x = builder.Parameter("x", {DType::kInt64, {}});
  ApplyGradient(kHalved, ReadVariable(builder, kHalved));
  builder.AddResult(Identity(x));
  return std::move(builder).Build().value();
}

Graph ReadingStep() {
  GraphBuilder builder(&BuiltinOps(), "read");
  builder.Parameter("x", {DType::kInt64, {}});
  builder.AddResult(ReadVariable(builder, kCounter));
  return std::move(builder).Build().value();
}

// A coordinator whose program trains as Fit() does: its progress is the number
// of steps whose results it has taken.
class Coordinator {
 public:
  static absl::StatusOr<std::unique_ptr<Coordinator>> Begin(
      TestCluster* cluster, const std::string& journal_dir,
      const Graph& step = CountingStep(),
      const UpdateRounds::Options& rounds = {}) {
    auto coordinator = std::make_unique<Coordinator>();
    ClusterConnection::Options options;
    options.journal_dir = journal_dir;
    options.rounds = rounds;
    ASSIGN_OR_RETURN(coordinator->strategy_, cluster->Connect(options));
    RETURN_IF_ERROR(coordinator->Create(kCounter, 0));
    RETURN_IF_ERROR(coordinator->Create(kHalved, 1));
    RETURN_IF_ERROR(
        coordinator->variables().SetOptimizer(Sgd({.learning_rate = 0.5})));
    ASSIGN_OR_RETURN(
        coordinator->loop_,
        coordinator->strategy_->CreateLoop(step, Dataset::Range(1000).Repeat(),
                                           LoopKind::kTrain));
    TrainingRecovery* const recovery = coordinator->strategy_->recovery();
    const std::any progress = recovery->TakeContinuedProgress();
    if (const auto* state = std::any_cast<TrainingState>(&progress)) {
      coordinator->step_count_ = state->message().step_in_epoch();
    }
    recovery->SetProgressSource([raw = coordinator.get()] {
      proto::TrainingState state;
      state.set_step_in_epoch(raw->step_count_);
      return std::any(TrainingState(std::move(state)));
    });
    return coordinator;
  }

  ~Coordinator() {
    if (loop_ != nullptr) strategy_->recovery()->SetProgressSource(nullptr);
  }

  // Trains until the results of `step_count` steps have been taken.
  absl::Status TrainUntil(int64_t step_count) {
    return loop_
        ->Run(step_count - step_count_,
              [this](absl::Span<const Tensor>) {
                ++step_count_;
                return absl::OkStatus();
              })
        .status();
  }

  // Runs steps that only read, on the workers.
  absl::Status Evaluate(int64_t step_count) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<StepLoop> loop,
        strategy_->CreateLoop(ReadingStep(), Dataset::Range(step_count),
                              LoopKind::kEvaluate));
    return loop
        ->Run(step_count,
              [](absl::Span<const Tensor>) { return absl::OkStatus(); })
        .status();
  }

  void NoteEnd(int exit_code) {
    strategy_->connection()->journal().NoteEnd(exit_code, "the end");
  }

  int64_t step_count() const { return step_count_; }
  VariableStore& variables() { return strategy_->variables(); }
  RunTimeline& timeline() {
    return strategy_->connection()->dispatcher().timeline();
  }
  ServerRecovery& recovery() { return strategy_->connection()->recovery(); }

  absl::StatusOr<float> Count() { return Read(kCounter); }
  absl::StatusOr<float> Halved() { return Read(kHalved); }

 private:
  absl::Status Create(const VariableHandle& variable, double value) {
    proto::VariableSpec spec;
    spec.set_name(variable.name);
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_shape();
    spec.mutable_initializer()->mutable_constant()->set_value(value);
    return variables().Create(spec);
  }
  absl::StatusOr<float> Read(const VariableHandle& variable) {
    ASSIGN_OR_RETURN(const Tensor value, variables().Read(variable.name));
    return value.scalar<float>();
  }

  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<StepLoop> loop_;
  int64_t step_count_ = 0;
};

class TrainingJournalTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_OK_AND_ASSIGN(first_, Begin());
  }

  absl::StatusOr<std::unique_ptr<Coordinator>> Begin() {
    return Coordinator::Begin(&cluster_, folder_ + "/journal");
  }

  // Ends the first coordinator as if its process were lost.
  absl::StatusOr<std::unique_ptr<Coordinator>> BeginSecond() {
    first_ = nullptr;
    return Begin();
  }

  void ExpectTasksAreRestarted(const std::string& reason) {
    const absl::Status begun = BeginSecond().status();
    EXPECT_THAT(begun, StatusIs(absl::StatusCode::kAborted, HasSubstr(reason)));
    EXPECT_EQ(ExitCodeOf(begun), ExitCode::kRestartMe);
  }

  const std::string folder_ =
      testing::TempDir() +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  TestCluster cluster_{2, 2};
  std::unique_ptr<Coordinator> first_;
};

TEST_F(TrainingJournalTest, StepsAfterThePlaceCountOnce) {
  ASSERT_OK(first_->TrainUntil(40));
  // The next place.
  ASSERT_OK(first_->TrainUntil(100));
  ASSERT_OK_AND_ASSIGN(const auto second, BeginSecond());
  EXPECT_EQ(second->step_count(), 40);
  EXPECT_THAT(second->Count(), IsOkAndHolds(100));
  ASSERT_OK(second->TrainUntil(100));
  EXPECT_THAT(second->Count(), IsOkAndHolds(100));
  ASSERT_OK(second->TrainUntil(130));
  EXPECT_THAT(second->Count(), IsOkAndHolds(130));
}

TEST_F(TrainingJournalTest, TheTimelineOfTheRunContinues) {
  ASSERT_OK(first_->TrainUntil(40));
  first_->timeline().Note(LogSeverity::kInfo, "something happened",
                          {.pause = absl::Seconds(1)});
  ASSERT_OK(first_->TrainUntil(60));
  const absl::Time begun_at = first_->timeline().status().begun_at;
  ASSERT_OK_AND_ASSIGN(auto second, BeginSecond());
  // Its successor has the events from the first record of the second.
  second = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto third, Begin());
  const TimelineStatus timeline = third->timeline().status();
  EXPECT_LT(absl::AbsDuration(timeline.begun_at - begun_at),
            absl::Milliseconds(1));
  ASSERT_EQ(timeline.events.size(), 2u);
  EXPECT_EQ(timeline.events[0].text, "something happened");
  EXPECT_THAT(timeline.events[1].text, HasSubstr("continuing the training"));
  EXPECT_EQ(timeline.events[0].cost, absl::Seconds(1));
  EXPECT_GT(timeline.events[1].cost, absl::ZeroDuration());
}

// Each update needs the gradients of two steps, so 41 steps end inside a round.
TEST_F(TrainingJournalTest, ASuccessorContinuesTheOpenRound) {
  TestCluster cluster(2, 1);
  const auto begin = [&] {
    return Coordinator::Begin(&cluster, folder_ + "/rounds", HalvingStep(),
                              {.gradient_count = 2});
  };
  ASSERT_OK_AND_ASSIGN(auto first, begin());
  ASSERT_OK(first->TrainUntil(41));
  ASSERT_OK(first->TrainUntil(60));
  EXPECT_THAT(first->Halved(), IsOkAndHolds(std::ldexp(1.0f, -30)));
  first = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto second, begin());
  EXPECT_EQ(second->step_count(), 41);
  ASSERT_OK(second->TrainUntil(100));
  EXPECT_THAT(second->Halved(), IsOkAndHolds(std::ldexp(1.0f, -50)));
}

// The closures of an evaluation have higher ids than the steps that follow.
TEST_F(TrainingJournalTest, StepsAfterAnEvaluationCount) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK_AND_ASSIGN(const auto second, BeginSecond());
  ASSERT_OK(second->Evaluate(10));
  ASSERT_OK(second->TrainUntil(100));
  EXPECT_THAT(second->Count(), IsOkAndHolds(100));
  ASSERT_OK(second->Evaluate(10));
  ASSERT_OK(second->TrainUntil(120));
  EXPECT_THAT(second->Count(), IsOkAndHolds(120));
}

TEST_F(TrainingJournalTest, ALaterCoordinatorEndsOneThatStillRuns) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK_AND_ASSIGN(const auto second, Begin());
  EXPECT_THAT(first_->TrainUntil(80).message(), HasSubstr("newer coordinator"));
  ASSERT_OK(second->TrainUntil(80));
  EXPECT_THAT(second->Count(), IsOkAndHolds(80));
}

TEST_F(TrainingJournalTest, AssignmentsBeforeThePlaceAreIgnored) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK_AND_ASSIGN(const auto second, BeginSecond());
  ASSERT_OK(second->variables().Assign("counter", Tensor::Scalar(7.0f)));
  EXPECT_THAT(second->Count(), IsOkAndHolds(40));
  ASSERT_OK(second->TrainUntil(41));
  ASSERT_OK(second->variables().Assign("counter", Tensor::Scalar(7.0f)));
  EXPECT_THAT(second->Count(), IsOkAndHolds(7));
}

TEST_F(TrainingJournalTest, AssignmentsDuringTrainingAreNotRepeated) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK(first_->variables().Assign("counter", Tensor::Scalar(7.0f)));
  ExpectTasksAreRestarted("interrupted during assignments to variables");
}

TEST_F(TrainingJournalTest, TheNextPlaceEndsAnObstacle) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK(first_->variables().Assign("counter", Tensor::Scalar(7.0f)));
  ASSERT_OK(first_->TrainUntil(41));
  ASSERT_OK_AND_ASSIGN(const auto second, BeginSecond());
  EXPECT_EQ(second->step_count(), 40);
  ASSERT_OK(second->TrainUntil(50));
  EXPECT_THAT(second->Count(), IsOkAndHolds(17));
}

TEST_F(TrainingJournalTest, CompleteTrainingIsNotRepeated) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK(first_->recovery().NoteTrained());
  ASSERT_OK_AND_ASSIGN(const auto second, BeginSecond());
  EXPECT_EQ(second->step_count(), 40);
  EXPECT_TRUE(second->recovery().is_continuing());
  ASSERT_OK(second->recovery().NoteTrained());
  EXPECT_FALSE(second->recovery().is_continuing());
  EXPECT_THAT(second->Count(), IsOkAndHolds(40));
}

TEST_F(TrainingJournalTest, TasksThatHaveNotTrainedAreRestarted) {
  ExpectTasksAreRestarted("training had not begun");
}

TEST_F(TrainingJournalTest, TasksThatWereNotToldOfTheEndAreTold) {
  ASSERT_OK(first_->TrainUntil(40));
  first_->NoteEnd(/*exit_code=*/0);
  EXPECT_THAT(BeginSecond(), StatusIs(absl::StatusCode::kAborted,
                                      HasSubstr("some tasks were not told")));
  const ParameterService::Outcome end = cluster_.server(0).AwaitEnd();
  EXPECT_EQ(end.end, ParameterService::End::kJobEnd);
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(TrainingJournalTest, TasksOfAFailedJobAreRestarted) {
  ASSERT_OK(first_->TrainUntil(40));
  first_->NoteEnd(/*exit_code=*/1);
  ExpectTasksAreRestarted("had ended the job");
}

TEST_F(TrainingJournalTest, RepeatedStepsAreNoSnapshotToRollBackTo) {
  ASSERT_OK(first_->TrainUntil(40));
  ASSERT_OK_AND_ASSIGN(const auto second, BeginSecond());
  // The point of the initial values is gone.
  EXPECT_EQ(second->recovery().rollback_point_count(), 0u);
  const std::string prefix = folder_ + "/ckpt-1";
  ASSERT_OK(second->variables().SaveShards(prefix, 2));
  EXPECT_EQ(second->recovery().rollback_point_count(), 0u);
  ASSERT_OK(second->TrainUntil(50));
  ASSERT_OK(second->variables().SaveShards(prefix, 2));
  EXPECT_EQ(second->recovery().rollback_point_count(), 1u);
}

}  // namespace
}  // namespace muster
