#include "common/learn/train/callbacks/tensor_board.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/events/event_writer.h"
#include "common/io/events/testing/event_file.h"
#include "common/io/records/byte_sink.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/net/status/job_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/event.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

Dataset Zeros(int64_t count) {
  return Dataset::FromTensorSlices({Tensor::Zeros(DType::kFloat32, {count, 3}),
                                    Tensor::Zeros(DType::kFloat32, {count, 1})})
      .Batch(1);
}

class TensorBoardTest : public ::testing::Test {
 protected:
  TensorBoardTest()
      : log_dir_(absl::StrCat(
            std::getenv("TEST_TMPDIR"), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        options_({.log_dir = log_dir_}) {
    EXPECT_OK(model_.Compile({.optimizer = Sgd({.learning_rate = 0.5}),
                              .loss = MeanSquaredError()}));
  }

  absl::StatusOr<History> Fit(TensorBoard* board, int epochs, int64_t steps,
                              bool validates = false) {
    FitOptions fit{
        .epochs = epochs, .verbose = Verbosity::kSilent, .callbacks = {board}};
    if (validates) fit.validation_data = Zeros(1);
    return model_.Fit(Zeros(steps), fit);
  }

  std::vector<proto::Event> Train() const {
    return ReadEventFolder(log_dir_ + "/train");
  }
  std::vector<proto::Event> Validation() const {
    return ReadEventFolder(log_dir_ + "/validation");
  }

  const std::string log_dir_;
  TensorBoardOptions options_;
  Model model_ = Sequential({Dense(2), Dense(1)});
};

TEST_F(TensorBoardTest, WritesEpochsByDefault) {
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 2, 3, /*validates=*/true).status());
  EXPECT_THAT(TagsOf(Train()),
              ElementsAre("epoch_learning_rate", "epoch_loss", "keras"));
  EXPECT_EQ(ScalarsOf(Train(), "epoch_learning_rate"),
            Scalars({{0, 0.5f}, {1, 0.5f}}));
  EXPECT_EQ(ScalarsOf(Train(), "epoch_loss"), Scalars({{0, 0.0f}, {1, 0.0f}}));
  EXPECT_THAT(TagsOf(Validation()),
              ElementsAre("epoch_loss", "evaluation_loss_vs_iterations"));
  EXPECT_EQ(ScalarsOf(Validation(), "epoch_loss"),
            Scalars({{0, 0.0f}, {1, 0.0f}}));
  EXPECT_EQ(ScalarsOf(Validation(), "evaluation_loss_vs_iterations"),
            Scalars({{3, 0.0f}, {6, 0.0f}}));
}

TEST_F(TensorBoardTest, NothingOfValidationWithoutValidation) {
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 1, 1).status());
  EXPECT_FALSE(std::filesystem::exists(log_dir_ + "/validation"));
}

TEST_F(TensorBoardTest, WritesEveryNthBatchOfAllEpochs) {
  options_.update_freq = 2;
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 2, 3).status());
  EXPECT_EQ(ScalarsOf(Train(), "batch_loss"),
            Scalars({{2, 0.0f}, {4, 0.0f}, {6, 0.0f}}));
}

TEST_F(TensorBoardTest, AnotherFitContinuesWhereTheFirstEnded) {
  options_.update_freq = TensorBoardOptions::kBatch;
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 1, 2).status());
  ASSERT_OK(Fit(&board, 1, 1).status());
  EXPECT_EQ(ScalarsOf(Train(), "batch_loss"),
            Scalars({{1, 0.0f}, {2, 0.0f}, {3, 0.0f}}));
}

TEST_F(TensorBoardTest, HistogramsOfWeightsEveryNthEpoch) {
  options_.histogram_freq = 2;
  options_.write_images = true;
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 3, 1).status());
  EXPECT_THAT(TagsOf(Train()),
              IsSupersetOf({"dense/kernel/histogram", "dense/kernel/image",
                            "dense/bias/histogram", "dense_1/bias/histogram"}));
  std::vector<int64_t> steps;
  for (const proto::Event& event : Train()) {
    for (const proto::Summary::Value& value : event.summary().value()) {
      if (value.tag() == "dense/kernel/histogram") {
        steps.push_back(event.step());
      }
    }
  }
  EXPECT_THAT(steps, ElementsAre(0, 2));
}

// A clock that advances with every call.
class TickingClock final : public Clock {
 public:
  absl::Time Now() override { return now_ += absl::Milliseconds(250); }
  bool AwaitWithDeadline(absl::Mutex*, const absl::Condition&,
                         absl::Time) override {
    return false;
  }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(TensorBoardTest, StepsPerSecondOfBatchesAndEpochs) {
  TickingClock clock;
  options_.clock = &clock;
  options_.update_freq = TensorBoardOptions::kBatch;
  options_.write_steps_per_second = true;
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 1, 2).status());
  EXPECT_EQ(ScalarsOf(Train(), "batch_steps_per_second"),
            Scalars({{1, 4.0f}, {2, 4.0f}}));
  EXPECT_EQ(ScalarsOf(Train(), "epoch_steps_per_second"), Scalars({{0, 4.0f}}));
}

TEST_F(TensorBoardTest, TheModelsLayersAreDrawn) {
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 1, 1).status());
  std::string json;
  for (const proto::Event& event : Train()) {
    for (const proto::Summary::Value& value : event.summary().value()) {
      if (value.tag() == "keras") json = value.tensor().string_val(0);
    }
  }
  const nlohmann::json model = nlohmann::json::parse(json);
  EXPECT_EQ(model["class_name"], "Sequential");
  ASSERT_EQ(model["config"]["layers"].size(), 2u);
  const nlohmann::json& dense = model["config"]["layers"][1];
  EXPECT_EQ(dense["class_name"], "Dense");
  EXPECT_EQ(dense["config"]["name"], "dense_1");
  EXPECT_EQ(dense["config"]["dtype"]["config"]["name"], "float32");
}

TEST_F(TensorBoardTest, NoGraphUnlessWanted) {
  options_.write_graph = false;
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, 1, 1).status());
  EXPECT_THAT(TagsOf(Train()),
              ElementsAre("epoch_learning_rate", "epoch_loss"));
}

// A disk without free space.
class FullSink final : public ByteSink {
 public:
  absl::Status Append(absl::string_view) override {
    return absl::ResourceExhaustedError("no space");
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
};

TEST_F(TensorBoardTest, AFullDiskDoesNotEndTraining) {
  int attempt_count = 0;
  options_.update_freq = TensorBoardOptions::kBatch;
  options_.events.create_file = [&](absl::string_view) {
    ++attempt_count;
    return std::make_unique<FullSink>();
  };
  TensorBoard board(options_);
  ASSERT_OK_AND_ASSIGN(const History history, Fit(&board, 3, 2, true));
  EXPECT_EQ(history.epoch.size(), 3u);
  // One for each folder: the next would be written a minute later.
  EXPECT_EQ(attempt_count, 2);
}

TEST_F(TensorBoardTest, AFolderThatCannotBeMadeIsNamedAtTheBeginning) {
  std::ofstream(log_dir_) << "not a folder";
  TensorBoard board(options_);
  const absl::Status status = Fit(&board, 1, 1).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(log_dir_));
}

TEST_F(TensorBoardTest, WritesATraceOfTheBatch) {
  options_.profile_batch = 4;
  TensorBoard board(options_);
  ASSERT_OK(Fit(&board, /*epochs=*/2, /*steps=*/3));
  std::ifstream file(log_dir_ + "/trace_of_batch_4.json");
  const auto trace =
      nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(trace.is_object());
  int kernel_count = 0;
  int step_count = 0;
  for (const auto& event : trace["traceEvents"]) {
    kernel_count += event.value("cat", "") == "kernel" ? 1 : 0;
    step_count += event.value("name", "") == "train step" ? 1 : 0;
  }
  EXPECT_GT(kernel_count, 0);
  EXPECT_LE(step_count, 1);

  options_.profile_batch = 7;
  TensorBoard never(options_);
  ASSERT_OK(Fit(&never, /*epochs=*/2, /*steps=*/3));
  EXPECT_FALSE(std::filesystem::exists(log_dir_ + "/trace_of_batch_7.json"));
  EXPECT_OK(JobTrace::OfProcess().Begin());
  EXPECT_OK(JobTrace::OfProcess().End());
}

TEST_F(TensorBoardTest, SaysWhatIsNotSupported) {
  const auto code = [](const TensorBoardOptions& options) {
    return TensorBoard::CheckOptions(options).code();
  };
  EXPECT_EQ(code({.profile_batch = -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.embeddings_freq = 1}), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({.histogram_freq = -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.update_freq = -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.log_dir = ""}), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster
