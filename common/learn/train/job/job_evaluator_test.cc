// A training and its evaluator, each as its own process would run it.

#include "common/learn/train/job/job_evaluator.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/events/testing/event_file.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/evaluator/checkpoint_evaluator.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/evaluator/training_end.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kJob[] = R"(
  model { sequential { layers { dense { units: 1 } } } }
  train { synthetic { example_count: 8 feature_count: 2 seed: 1 } }
  validation { synthetic { example_count: 8 feature_count: 2 seed: 2 } }
  batch_size: 4
  epochs: 2
  optimizer { sgd {} }
  loss { mean_squared_error {} }
  callbacks { csv_logger { filename: "RUN/log.csv" } }
  callbacks { tensor_board { log_dir: "RUN/logs" } }
  evaluator { checkpoint_dir: "RUN/checkpoints" }
  seed: 5
)";

class JobEvaluatorTest : public ::testing::Test {
 protected:
  JobEvaluatorTest()
      : run_dir_(absl::StrCat(
            std::getenv("TEST_TMPDIR"), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        job_(Parse(kJob)) {}

  proto::TrainingJob Parse(const std::string& text) const {
    proto::TrainingJob job;
    EXPECT_TRUE(
        ParseJobMessage(absl::StrReplaceAll(text, {{"RUN", run_dir_}}), &job))
        << text;
    return job;
  }

  std::string ErrorOf(const std::string& evaluator) {
    job_.clear_evaluator();
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
        absl::StrCat("evaluator { ", evaluator, " }"), &job_));
    return std::string(
        BuildJobEvaluator(job_, run_dir_, Compiled()).status().message());
  }

  static CompileOptions Compiled() {
    return {.metrics = {SparseCategoricalAccuracy().Named("accuracy")}};
  }

  absl::Status Evaluate(const RunJobOptions& options) {
    ASSIGN_OR_RETURN(ResolvedJob resolved, ResolvedJob::FromProto(job_));
    return EvaluateJob(std::move(resolved), options);
  }

  absl::Status Train() {
    return RunJob(job_, DefaultStrategyFactory(/*thread_count=*/1),
                  {.run_dir = run_dir_, .verbose = Verbosity::kSilent})
        .status();
  }

  absl::Status SaveZeros() {
    ASSIGN_OR_RETURN(
        const auto manager,
        CheckpointManager::Create({.folder = run_dir_ + "/checkpoints"}));
    return manager
        ->Save([](TensorBundleWriter* writer) -> absl::Status {
          RETURN_IF_ERROR(writer->Add(VariableValueKey("dense/kernel"),
                                      Tensor::Zeros(DType::kFloat32, {2, 1})));
          return writer->Add(VariableValueKey("dense/bias"),
                             Tensor::Zeros(DType::kFloat32, {1}));
        })
        .status();
  }

  const std::string run_dir_;
  proto::TrainingJob job_;
};

TEST_F(JobEvaluatorTest, TrainingRunsItsCallbacksAndSaysWhenItIsOver) {
  ASSERT_OK(Train());
  EXPECT_TRUE(std::filesystem::exists(run_dir_ + "/log.csv"));
  EXPECT_THAT(
      ScalarsOf(ReadEventFolder(run_dir_ + "/logs/train"), "epoch_loss"),
      SizeIs(2));
  EXPECT_OK(ReadTrainingEnd(Disk::Real(), run_dir_ + "/checkpoints"));
}

TEST_F(JobEvaluatorTest, EveryTrainingHasAnEndOfItsOwn) {
  ASSERT_OK(Train());
  ASSERT_OK_AND_ASSIGN(
      const TrainingEnd first,
      ReadTrainingEnd(Disk::Real(), run_dir_ + "/checkpoints"));
  ASSERT_OK(Train());
  ASSERT_OK_AND_ASSIGN(
      const TrainingEnd second,
      ReadTrainingEnd(Disk::Real(), run_dir_ + "/checkpoints"));
  EXPECT_NE(first.training_id, second.training_id);
}

TEST_F(JobEvaluatorTest, ATrainingThatFailsHasNoEnd) {
  ASSERT_OK(Train());
  ASSERT_TRUE(
      ParseJobMessage(absl::StrCat("csv_logger { filename: '", run_dir_, "' }"),
                      job_.mutable_callbacks(0)));
  EXPECT_FALSE(Train().ok());
  EXPECT_EQ(
      ReadTrainingEnd(Disk::Real(), run_dir_ + "/checkpoints").status().code(),
      absl::StatusCode::kNotFound);
}

TEST_F(JobEvaluatorTest, ScoresTheJobsCheckpoints) {
  ASSERT_OK(SaveZeros());
  ASSERT_OK(Train());
  ASSERT_OK(Evaluate({.run_dir = run_dir_, .thread_count = 1}));
  EXPECT_THAT(ScalarsOf(ReadEventFolder(run_dir_ + "/evaluator"),
                        "evaluation_loss_vs_iterations"),
              SizeIs(1));
}

TEST_F(JobEvaluatorTest, ScoresOnWhatTheJobSplitsOff) {
  job_.clear_validation();
  job_.set_validation_split(0.5);
  ASSERT_OK(SaveZeros());
  ASSERT_OK(Train());
  ASSERT_OK(Evaluate({.run_dir = run_dir_, .thread_count = 1}));
  EXPECT_THAT(ScalarsOf(ReadEventFolder(run_dir_ + "/evaluator"),
                        "evaluation_loss_vs_iterations"),
              SizeIs(1));
}

TEST_F(JobEvaluatorTest, NeedsDataToEvaluateOn) {
  job_.clear_validation();
  const absl::Status status = Evaluate({.run_dir = run_dir_});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("validation"));
}

TEST_F(JobEvaluatorTest, NamesWhatMakesNoSense) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("checkpoint_dir"));
  EXPECT_THAT(ErrorOf("checkpoint_dir: \"c\" steps: 0"), HasSubstr("steps"));
  EXPECT_THAT(ErrorOf("checkpoint_dir: \"c\" timeout_seconds: -1"),
              HasSubstr("timeout_seconds"));
  EXPECT_THAT(ErrorOf("checkpoint_dir: \"c\" exporters {}"),
              HasSubstr("exporters[0]: name"));
  EXPECT_THAT(
      ErrorOf("checkpoint_dir: \"c\" exporters { name: \"e\" monitor: \"m\" }"),
      HasSubstr("mode"));
}

TEST_F(JobEvaluatorTest, BestIsByTheMonitorOfTheJob) {
  EXPECT_EQ(ErrorOf("checkpoint_dir: \"c\" "
                    "exporters { name: \"e\" monitor: \"accuracy\" }"),
            "");
  ASSERT_OK_AND_ASSIGN(const CheckpointEvaluator::Options options,
                       BuildJobEvaluator(job_, run_dir_, Compiled()));
  const auto& is_better = options.exporters[0].is_better;
  EXPECT_TRUE(is_better({{"accuracy", 0.5}}, {{"accuracy", 0.6}}));
  EXPECT_FALSE(is_better({{"accuracy", 0.5}}, {{"accuracy", 0.4}}));
  EXPECT_FALSE(is_better({{"accuracy", 0.5}}, {{"loss", 0.4}}));
}

}  // namespace
}  // namespace muster
