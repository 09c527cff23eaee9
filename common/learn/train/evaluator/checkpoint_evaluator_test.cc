#include "common/learn/train/evaluator/checkpoint_evaluator.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/events/testing/event_file.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/evaluator/train_and_evaluate.h"
#include "common/learn/train/evaluator/training_end.h"
#include "common/learn/train/model.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One example {1, 0}. With the weight w, the loss is w * w.
Dataset OneExample() {
  return Dataset::FromTensorSlices({Tensor::FromValues<float>({1, 1}, {1}),
                                    Tensor::Zeros(DType::kFloat32, {1, 1})})
      .Batch(1);
}

absl::Status WriteWeight(TensorBundleWriter* writer, float weight,
                         int64_t iterations) {
  RETURN_IF_ERROR(writer->Add(VariableValueKey("dense/kernel"),
                              Tensor::FromValues<float>({1, 1}, {weight})));
  return writer->Add(VariableKey(IterationsPath()),
                     Tensor::FromValues<int64_t>({}, {iterations}));
}

// Saves the number of the epoch as the weight.
class SaveEpochs final : public Callback {
 public:
  explicit SaveEpochs(CheckpointManager* manager) : manager_(manager) {}

  absl::Status OnEpochEnd(Model&, int epoch, Logs&) override {
    return manager_
        ->Save([epoch](TensorBundleWriter* writer) {
          return WriteWeight(writer, static_cast<float>(epoch + 1), epoch + 1);
        })
        .status();
  }

 private:
  CheckpointManager* const manager_;
};

class CheckpointEvaluatorTest : public ::testing::Test {
 protected:
  CheckpointEvaluatorTest()
      : root_(absl::StrCat(
            std::getenv("TEST_TMPDIR"), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        manager_(CheckpointManager::Create({.folder = root_ + "/checkpoints"})
                     .value()) {
    EXPECT_OK(model_.Compile({.optimizer = Sgd({.learning_rate = 0.0}),
                              .loss = MeanSquaredError()}));
    options_.checkpoint_dir = root_ + "/checkpoints";
    options_.log_dir = root_ + "/evaluator";
    options_.poll_interval = absl::Milliseconds(1);
  }

  std::string Save(float weight, int64_t iterations) {
    return manager_
        ->Save([&](TensorBundleWriter* writer) {
          return WriteWeight(writer, weight, iterations);
        })
        .value();
  }

  absl::Status EndTraining(const std::string& id) {
    return WriteTrainingEnd(Disk::Real(), options_.checkpoint_dir,
                            {.training_id = id});
  }

  std::unique_ptr<CheckpointEvaluator> Make() {
    auto evaluator =
        CheckpointEvaluator::Create(&model_, OneExample(), options_);
    EXPECT_OK(evaluator.status());
    return *std::move(evaluator);
  }

  static std::vector<int64_t> NumbersOf(
      const std::vector<ScoredCheckpoint>& all) {
    std::vector<int64_t> numbers;
    for (const ScoredCheckpoint& scored : all) numbers.push_back(scored.number);
    return numbers;
  }

  Scalars Losses() const {
    return ScalarsOf(ReadEventFolder(options_.log_dir),
                     "evaluation_loss_vs_iterations");
  }

  const std::string root_;
  const std::unique_ptr<CheckpointManager> manager_;
  Model model_ = Sequential({Dense(1, {.use_bias = false})});
  CheckpointEvaluator::Options options_;
};

TEST_F(CheckpointEvaluatorTest, ScoresEveryCheckpointInOrder) {
  Save(1, 10);
  Save(3, 20);
  Save(2, 30);
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK_AND_ASSIGN(const std::vector<ScoredCheckpoint> all, Make()->Run());
  EXPECT_THAT(NumbersOf(all), ElementsAre(1, 2, 3));
  EXPECT_EQ(all[1].logs.at("loss"), 9.0);
  EXPECT_EQ(Losses(), Scalars({{10, 1.0f}, {20, 9.0f}, {30, 4.0f}}));
}

TEST_F(CheckpointEvaluatorTest, AfterTheEndOfTrainingScoresTheLastFirst) {
  options_.on_scored = [&](const ScoredCheckpoint& scored) {
    // The last checkpoint is written before the end of training.
    if (scored.number == 1) {
      Save(2, 20);
      EXPECT_OK(EndTraining("a"));
    }
  };
  Save(1, 10);
  ASSERT_OK_AND_ASSIGN(const std::vector<ScoredCheckpoint> all, Make()->Run());
  EXPECT_THAT(NumbersOf(all), ElementsAre(1, 2));
}

TEST_F(CheckpointEvaluatorTest, RemembersOverARestart) {
  Save(1, 10);
  Save(2, 20);
  ASSERT_OK_AND_ASSIGN(const int count, Make()->ScoreNew());
  EXPECT_EQ(count, 2);
  Save(3, 30);
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK_AND_ASSIGN(const std::vector<ScoredCheckpoint> all, Make()->Run());
  EXPECT_THAT(NumbersOf(all), ElementsAre(3));
}

TEST_F(CheckpointEvaluatorTest, AnEarlierEndOfTrainingIsIgnored) {
  Save(1, 10);
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK(Make()->Run().status());

  options_.timeout = absl::Milliseconds(20);
  const absl::Status status = Make()->Run().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("ckpt-1"), HasSubstr(options_.checkpoint_dir),
                    HasSubstr("earlier training")));

  options_.timeout = absl::InfiniteDuration();
  ASSERT_OK(EndTraining("b"));
  ASSERT_OK_AND_ASSIGN(const std::vector<ScoredCheckpoint> all, Make()->Run());
  EXPECT_THAT(all, IsEmpty());
}

TEST_F(CheckpointEvaluatorTest, TimesOutWithoutNewCheckpoints) {
  options_.checkpoint_dir = root_ + "/nothing";
  options_.timeout = absl::Milliseconds(20);
  const absl::Status status = Make()->Run().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("first checkpoint"), HasSubstr("/nothing")));
}

TEST_F(CheckpointEvaluatorTest, ADamagedCheckpointIsPassedOver) {
  const std::string prefix = Save(1, 10);
  std::ofstream(prefix + ".index", std::ios::app) << "x";
  Save(2, 20);
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK_AND_ASSIGN(const std::vector<ScoredCheckpoint> all, Make()->Run());
  EXPECT_THAT(NumbersOf(all), ElementsAre(2));
}

TEST_F(CheckpointEvaluatorTest, ACheckpointOfAnotherModelIsAnError) {
  ASSERT_OK(manager_
                ->Save([](TensorBundleWriter* writer) {
                  return writer->Add(VariableValueKey("other/kernel"),
                                     Tensor::FromValues<float>({1, 1}, {1}));
                })
                .status());
  const absl::Status status = Make()->Run().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dense/kernel"));
}

TEST_F(CheckpointEvaluatorTest, IsInterruptedWhileItWaits) {
  options_.poll_interval = absl::Minutes(10);
  const std::unique_ptr<CheckpointEvaluator> evaluator = Make();
  Save(1, 10);
  absl::Status status;
  std::thread waiter([&] { status = evaluator->Run().status(); });
  evaluator->Interrupt();
  waiter.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(CheckpointEvaluatorTest, ADamagedStateIsNamed) {
  std::filesystem::create_directories(options_.log_dir);
  std::ofstream(options_.log_dir + "/evaluator.json") << "{\"scored\": 3";
  const absl::Status status =
      CheckpointEvaluator::Create(&model_, OneExample(), options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("evaluator.json"));
}

// Names of the checkpoints that the folder lists.
std::vector<std::string> ExportsOf(const std::string& folder) {
  std::vector<std::string> names;
  const auto manager = CheckpointManager::Create({.folder = folder});
  for (const std::string& prefix : (*manager)->checkpoints()) {
    names.emplace_back(BaseName(prefix));
  }
  return names;
}

TEST_F(CheckpointEvaluatorTest, ExportsTheBestTheLatestAndTheLast) {
  options_.exporters = {
      {.name = "best", .when = ExportWhen::kBest},
      {.name = "latest", .when = ExportWhen::kLatest, .exports_to_keep = 2},
      {.name = "final", .when = ExportWhen::kFinal}};
  for (const float weight : {3.0f, 2.0f, 4.0f}) Save(weight, 1);
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK(Make()->Run().status());
  const std::string folder = options_.log_dir + "/export/";
  EXPECT_THAT(ExportsOf(folder + "best"), ElementsAre("ckpt-1", "ckpt-2"));
  EXPECT_THAT(ExportsOf(folder + "latest"), ElementsAre("ckpt-2", "ckpt-3"));
  EXPECT_THAT(ExportsOf(folder + "final"), ElementsAre("ckpt-3"));
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      TensorBundleReader::Open(Disk::Real(), folder + "best/ckpt-2"));
  ASSERT_OK_AND_ASSIGN(const Tensor weight,
                       reader->Read(VariableValueKey("dense/kernel")));
  EXPECT_EQ(weight.flat<float>()[0], 2.0f);
}

TEST_F(CheckpointEvaluatorTest, TheBestIsRememberedOverARestart) {
  options_.exporters = {{.name = "best", .when = ExportWhen::kBest}};
  Save(2, 1);
  ASSERT_OK(Make()->ScoreNew().status());
  Save(3, 1);
  ASSERT_OK(Make()->ScoreNew().status());
  EXPECT_THAT(ExportsOf(options_.log_dir + "/export/best"),
              ElementsAre("ckpt-1"));
}

TEST_F(CheckpointEvaluatorTest, TheLastIsExportedAlsoWhenScoredBeforeARestart) {
  options_.exporters = {{.name = "final", .when = ExportWhen::kFinal}};
  Save(2, 1);
  ASSERT_OK(Make()->ScoreNew().status());
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK(Make()->Run().status());
  EXPECT_THAT(ExportsOf(options_.log_dir + "/export/final"),
              ElementsAre("ckpt-1"));
}

TEST_F(CheckpointEvaluatorTest, RefusesInvalidExporters) {
  const auto error = [&](const ExporterOptions& exporter) {
    options_.exporters = {exporter};
    return std::string(
        CheckpointEvaluator::Create(&model_, OneExample(), options_)
            .status()
            .message());
  };
  EXPECT_THAT(error({.name = "a/b"}), HasSubstr("a/b"));
  EXPECT_THAT(error({.name = "a", .exports_to_keep = 0}),
              HasSubstr("exports_to_keep"));
}

absl::StatusOr<Model> MakeModel(Strategy& strategy) {
  Model model = Sequential({Dense(1, {.use_bias = false})});
  RETURN_IF_ERROR(model.Compile(
      strategy,
      {.optimizer = Sgd({.learning_rate = 0.0}), .loss = MeanSquaredError()}));
  return model;
}

TEST_F(CheckpointEvaluatorTest, AProcessAloneTrainsAndEvaluates) {
  Task task(TaskOptions(), {}, /*seed=*/0, /*network=*/nullptr);
  SaveEpochs save(manager_.get());
  ASSERT_OK_AND_ASSIGN(
      const TrainAndEvaluateResult result,
      TrainAndEvaluate(task,
                       {.make_model = MakeModel,
                        .data = OneExample(),
                        .fit = {.epochs = 3,
                                .verbose = Verbosity::kSilent,
                                .callbacks = {&save}},
                        .checkpoint_dir = options_.checkpoint_dir},
                       {.data = OneExample(), .log_dir = options_.log_dir}));
  EXPECT_EQ(result.history.epoch.size(), 3u);
  EXPECT_THAT(NumbersOf(result.evaluations), ElementsAre(1, 2, 3));
  EXPECT_EQ(Losses(), Scalars({{1, 1.0f}, {2, 4.0f}, {3, 9.0f}}));
}

TEST_F(CheckpointEvaluatorTest, AnEvaluatorTaskDoesNotTrain) {
  TaskOptions options;
  options.config.task = {TaskType::kEvaluator, 0};
  Task task(options, {}, /*seed=*/0, /*network=*/nullptr);
  Save(2, 7);
  ASSERT_OK(EndTraining("a"));
  ASSERT_OK_AND_ASSIGN(
      const TrainAndEvaluateResult result,
      TrainAndEvaluate(task,
                       {.make_model = MakeModel,
                        .data = OneExample(),
                        .checkpoint_dir = options_.checkpoint_dir},
                       {.data = OneExample(), .log_dir = options_.log_dir}));
  EXPECT_EQ(result.history.step_count, 0);
  EXPECT_THAT(NumbersOf(result.evaluations), ElementsAre(1));
}

}  // namespace
}  // namespace muster
