#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/non_finite.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/callbacks/csv_logger.h"
#include "common/learn/train/callbacks/early_stopping.h"
#include "common/learn/train/callbacks/lambda_callback.h"
#include "common/learn/train/callbacks/learning_rate_scheduler.h"
#include "common/learn/train/callbacks/reduce_lr_on_plateau.h"
#include "common/learn/train/callbacks/terminate_on_nan.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Batches of one; every gradient of w in y = w * x is 2 * w.
Dataset Ones(int64_t count) {
  Tensor x = Tensor::Zeros(DType::kFloat32, {count, 1});
  for (float& value : x.mutable_flat<float>()) value = 1;
  return Dataset::FromTensorSlices(
             {x, Tensor::Zeros(DType::kFloat32, {count, 1})})
      .Batch(1);
}

Model OneWeight() {
  return Sequential(
      {Dense(1, {.use_bias = false, .kernel_initializer = Constant(1.0)})});
}

CompileOptions WithSgd(double rate) {
  return {.optimizer = Sgd({.learning_rate = rate}),
          .loss = MeanSquaredError()};
}

FitOptions Quiet(int epochs, std::vector<Callback*> callbacks) {
  return {.epochs = epochs,
          .verbose = Verbosity::kSilent,
          .callbacks = std::move(callbacks)};
}

float WeightOf(const Model& model) {
  return model.GetWeights().value()[0].flat<float>()[0];
}

std::string TestPath(absl::string_view name) {
  return absl::StrCat(
      std::getenv("TEST_TMPDIR"), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name(), "/",
      name);
}

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(LearningRateTest, TakesEffectWithTheNextUpdateAndKeepsSlots) {
  Model model = OneWeight();
  ASSERT_OK(
      model.Compile({.optimizer = Sgd({.learning_rate = 0.25, .momentum = 0.5}),
                     .loss = MeanSquaredError()}));
  LambdaCallback change(
      {.on_epoch_begin = [](Model& model, int epoch) -> absl::Status {
        return model.SetLearningRate(epoch == 0 ? 0.25 : 0.125);
      }});
  ASSERT_OK(model.Fit(Ones(1), Quiet(2, {&change})).status());
  // Keras' momentum: v = 0.5 v - rate * g; w += v. First v = -0.5, w = 0.5;
  // then v = -0.25 - 0.125 * 1 and w = 0.5 - 0.375.
  EXPECT_EQ(WeightOf(model), 0.125f);
  ASSERT_OK_AND_ASSIGN(const double rate, model.learning_rate());
  EXPECT_EQ(rate, 0.125);
  ASSERT_OK_AND_ASSIGN(const int64_t iterations, model.iterations());
  EXPECT_EQ(iterations, 2);
}

TEST(LearningRateTest, ReachesEveryReplica) {
  ASSERT_OK_AND_ASSIGN(
      const auto strategy,
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"}}));
  Model model = OneWeight();
  ASSERT_OK(model.Compile(*strategy, WithSgd(0.5)));
  LearningRateScheduler scheduler([](int, double) { return 0.125; });
  ASSERT_OK(
      model.Fit(Ones(2).Unbatch().Batch(2), Quiet(1, {&scheduler})).status());
  EXPECT_EQ(WeightOf(model), 0.75f);
}

TEST(LearningRateTest, OfAScheduleIsReadAndNotSet) {
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.5)));
  ASSERT_OK(model.Compile({.optimizer = Sgd({.learning_rate = InverseTimeDecay(
                                                 {.initial_learning_rate = 0.5,
                                                  .decay_steps = 1,
                                                  .decay_rate = 1})}),
                           .loss = MeanSquaredError()}));
  ASSERT_OK(model.Fit(Ones(3), Quiet(1, {})).status());
  ASSERT_OK_AND_ASSIGN(const double rate, model.learning_rate());
  EXPECT_EQ(rate, 0.125);
  const absl::Status status = model.SetLearningRate(0.1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("schedule"));
}

TEST(LearningRateTest, RejectsInvalidRates) {
  Model model = OneWeight();
  EXPECT_EQ(model.SetLearningRate(0.1).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(model.Compile(WithSgd(0.5)));
  EXPECT_EQ(model.SetLearningRate(-1).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.SetLearningRate(NAN).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_OK_AND_ASSIGN(const double rate, model.learning_rate());
  EXPECT_EQ(rate, 0.5);
}

TEST(LearningRateSchedulerTest, IsAskedWithEpochAndRateAndIsLogged) {
  std::ostringstream output;
  LearningRateScheduler scheduler(
      [](int epoch, double rate) { return epoch == 0 ? rate : rate / 2; }, 1,
      &output);
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.5)));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Ones(1), Quiet(3, {&scheduler})));
  EXPECT_THAT(history.history.at("learning_rate"),
              ElementsAre(0.5, 0.25, 0.125));
  EXPECT_EQ(output.str(),
            "\nEpoch 1: LearningRateScheduler setting learning rate to 0.5.\n"
            "\nEpoch 2: LearningRateScheduler setting learning rate to 0.25.\n"
            "\nEpoch 3: LearningRateScheduler setting learning rate to 0.125."
            "\n");
}

TEST(LearningRateSchedulerTest, NamesItselfWhenTheRateIsInvalid) {
  LearningRateScheduler scheduler([](int, double) { return -1.0; });
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.5)));
  const absl::Status status =
      model.Fit(Ones(1), Quiet(1, {&scheduler})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("LearningRateScheduler in epoch 1"));
}

TEST(ReduceLROnPlateauTest, RefusesASchedulesRateAtTheBeginning) {
  ReduceLROnPlateau reduce({.monitor = "loss"});
  Model model = OneWeight();
  ASSERT_OK(model.Compile({.optimizer = Sgd({.learning_rate = InverseTimeDecay(
                                                 {.initial_learning_rate = 0.5,
                                                  .decay_steps = 1,
                                                  .decay_rate = 1})}),
                           .loss = MeanSquaredError()}));
  EXPECT_EQ(model.Fit(Ones(1), Quiet(1, {&reduce})).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ReduceLROnPlateauTest, RefusesOptionsOutOfRange) {
  const auto message = [](const ReduceLROnPlateauOptions& options) {
    return std::string(ReduceLROnPlateau::CheckOptions(options).message());
  };
  EXPECT_THAT(message({.factor = 1.0}), HasSubstr("factor"));
  EXPECT_THAT(message({.factor = NAN}), HasSubstr("factor"));
  EXPECT_THAT(message({.patience = -1}), HasSubstr("patience"));
  EXPECT_THAT(message({.cooldown = -1}), HasSubstr("cooldown"));
  EXPECT_THAT(message({.min_lr = -1}), HasSubstr("min_lr"));
  EXPECT_OK(ReduceLROnPlateau::CheckOptions({}));
}

TEST(EarlyStoppingTest, AValueThatIsNotLoggedStopsNothing) {
  EarlyStopping stopping({.monitor = "val_loss"});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Ones(1), Quiet(3, {&stopping})));
  EXPECT_EQ(history.epoch.size(), 3u);
}

TEST(EarlyStoppingTest, StartsOverWithEachFit) {
  EarlyStopping stopping({.monitor = "loss"});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  for (int fit = 0; fit < 2; ++fit) {
    ASSERT_OK_AND_ASSIGN(const History history,
                         model.Fit(Ones(1), Quiet(9, {&stopping})));
    EXPECT_EQ(history.epoch.size(), 2u);
    EXPECT_EQ(stopping.stopped_epoch(), 1);
  }
}

TEST(TerminateOnNanTest, StopsAfterABatchWithoutAFiniteLoss) {
  std::ostringstream output;
  TerminateOnNan terminate({.output = &output});
  Model model = OneWeight();
  // The third loss overflows.
  ASSERT_OK(model.Compile(WithSgd(1e15)));
  FitOptions options = Quiet(5, {&terminate});
  options.fail_on_non_finite = false;
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(Ones(100), options));
  EXPECT_EQ(history.step_count, 3);
  EXPECT_EQ(output.str(), "Batch 2: Invalid loss, terminating training\n");
  ASSERT_TRUE(history.first_non_finite.has_value());
  EXPECT_EQ(ToString(*history.first_non_finite),
            "loss is inf after step 3 of epoch 1");
}

TEST(NonFiniteTest, EndsFitAtTheStepAndBeforeAnyCallback) {
  int64_t steps_ended = 0;
  bool has_ended = false;
  LambdaCallback counter({.on_train_end =
                              [&](Model&, const Logs&) {
                                has_ended = true;
                                return absl::OkStatus();
                              },
                          .on_train_batch_end =
                              [&](Model&, int64_t, const Logs&) {
                                ++steps_ended;
                                return absl::OkStatus();
                              }});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(1e15)));
  History history;
  FitOptions options = Quiet(5, {&counter});
  options.history_of_failure = &history;
  EXPECT_THAT(model.Fit(Ones(100), options),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("loss is inf after step 3 of epoch 1"),
                             HasSubstr("No checkpoint has been saved"))));
  EXPECT_EQ(steps_ended, 2);
  EXPECT_FALSE(has_ended);
  EXPECT_EQ(history.step_count, 3);
  EXPECT_TRUE(history.first_non_finite.has_value());
}

TEST(NonFiniteTest, ValuesOfValidationEndFitToo) {
  Tensor inf = Tensor::Full(DType::kFloat32, {1, 1}, 1e30);
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  FitOptions options = Quiet(5, {});
  options.validation_data = Dataset::FromTensorSlices({inf, inf}).Batch(1);
  EXPECT_OK(model.Fit(Ones(2), options).status());
  options.validation_data =
      Dataset::FromTensorSlices({inf, Tensor::Zeros(DType::kFloat32, {1, 1})})
          .Batch(1);
  EXPECT_THAT(model.Fit(Ones(2), options),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("val_loss is inf after step 2 of epoch 1")));
}

// The loss of step 3 is infinite: the weights after step 2 are finite still.
TEST(NonFiniteTest, NamesTheNewestCheckpointWithFiniteNumbers) {
  const std::string folder = TestPath("backup");
  BackupAndRestore backup({.backup_dir = folder, .save_each_epoch = true});
  LambdaCallback diverge({.on_epoch_begin = [](Model& model, int epoch) {
    // The loss is still that of finite weights in the epoch's only step.
    return epoch == 2
               ? model.SetWeights({Tensor::Full(DType::kFloat32, {1, 1}, 1e30)})
               : absl::OkStatus();
  }});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  EXPECT_THAT(model.Fit(Ones(1), Quiet(5, {&diverge, &backup})),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("after step 1 of epoch 3"),
                             HasSubstr(folder + "/backup-2."))));
  EXPECT_TRUE(std::filesystem::exists(folder + "/backup-2.index"));
}

TEST(NonFiniteTest, PassesOverCheckpointsWithInfiniteNumbers) {
  const std::string folder = TestPath("backup");
  BackupAndRestore backup({.backup_dir = folder});
  LambdaCallback diverge(
      {.on_epoch_end = [](Model& model, int epoch, const Logs&) {
        return epoch == 1 ? model.SetWeights({Tensor::Full(DType::kFloat32,
                                                           {1, 1}, INFINITY)})
                          : absl::OkStatus();
      }});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  EXPECT_THAT(
      model.Fit(Ones(1), Quiet(5, {&diverge, &backup})),
      StatusIs(absl::StatusCode::kInternal, HasSubstr(folder + "/backup-1.")));
}

TEST(TerminateOnNanTest, RaisesWhenAskedTo) {
  TerminateOnNan terminate({.raise_error = true});
  bool has_ended = false;
  LambdaCallback end({.on_train_end = [&](Model&, const Logs&) {
    has_ended = true;
    return absl::OkStatus();
  }});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(1e15)));
  FitOptions options = Quiet(5, {&terminate, &end});
  options.fail_on_non_finite = false;
  const absl::Status status = model.Fit(Ones(100), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("batch 2"));
  EXPECT_FALSE(has_ended);
}

// Logs that differ between epochs.
class Adding final : public Callback {
 public:
  absl::Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    logs = {{"loss", 0.1}, {"a,b", 1.0 / 3}};
    if (epoch > 0) logs.erase("a,b");
    return absl::OkStatus();
  }
};

TEST(CsvLoggerTest, WritesSortedColumnsAndNaForMissingValues) {
  const std::string path = TestPath("logs/train.csv");
  Adding adding;
  CsvLogger logger({.filename = path});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  ASSERT_OK(model.Fit(Ones(1), Quiet(2, {&adding, &logger})).status());
  EXPECT_EQ(ReadText(path),
            "epoch,\"a,b\",loss,\"val_a,b\",val_loss\n"
            "0,0.3333333333333333,0.1,NA,NA\n"
            "1,NA,0.1,NA,NA\n");
}

TEST(CsvLoggerTest, AppendsWithoutASecondHeader) {
  const std::string path = TestPath("train.csv");
  CsvLogger first({.filename = path, .separator = ";"});
  CsvLogger second({.filename = path, .separator = ";", .append = true});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  ASSERT_OK(model.Fit(Ones(1), Quiet(1, {&first})).status());
  FitOptions rest = Quiet(2, {&second});
  rest.initial_epoch = 1;
  ASSERT_OK(model.Fit(Ones(1), rest).status());
  EXPECT_EQ(ReadText(path), "epoch;loss;val_loss\n0;1.0;NA\n1;1.0;NA\n");
}

TEST(CsvLoggerTest, WritesAHeaderWhenAppendingToANewFile) {
  const std::string path = TestPath("train.csv");
  CsvLogger logger({.filename = path, .append = true});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  ASSERT_OK(model.Fit(Ones(1), Quiet(1, {&logger})).status());
  EXPECT_EQ(ReadText(path), "epoch,loss,val_loss\n0,1.0,NA\n");
}

TEST(CsvLoggerTest, AFullDiskDoesNotEndTraining) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  CsvLogger logger({.filename = "/dev/full"});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Ones(1), Quiet(3, {&logger})));
  EXPECT_EQ(history.epoch.size(), 3u);
}

TEST(CsvLoggerTest, NamesAFileThatCannotBeOpened) {
  CsvLogger logger({.filename = TestPath("")});
  std::filesystem::create_directories(TestPath(""));
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  const absl::Status status = model.Fit(Ones(1), Quiet(1, {&logger})).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(TestPath("")));
}

TEST(CsvLoggerTest, RefusesASeparatorOfSeveralCharacters) {
  EXPECT_THAT(
      std::string(CsvLogger::CheckOptions({.filename = "f", .separator = "ab"})
                      .message()),
      HasSubstr("separator"));
  EXPECT_FALSE(CsvLogger::CheckOptions({.filename = ""}).ok());
}

TEST(LambdaCallbackTest, CallsTheGivenFunctionsInOrder) {
  std::vector<std::string> calls;
  const auto note = [&calls](absl::string_view call) {
    calls.emplace_back(call);
    return absl::OkStatus();
  };
  LambdaCallback callback({
      .on_epoch_begin = [&](Model&,
                            int e) { return note(absl::StrCat("epoch ", e)); },
      .on_epoch_end =
          [&](Model&, int e, const Logs&) {
            return note(absl::StrCat("end of epoch ", e));
          },
      .on_train_begin = [&](Model&) { return note("train"); },
      .on_train_end = [&](Model&, const Logs&) { return note("end of train"); },
      .on_train_batch_end =
          [&](Model&, int64_t b, const Logs&) {
            return note(absl::StrCat("end of batch ", b));
          },
      .on_test_end = [&](Model&, const Logs&) { return note("end of test"); },
  });
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.0)));
  FitOptions options = Quiet(1, {&callback});
  options.validation_data = Ones(1);
  ASSERT_OK(model.Fit(Ones(2), options).status());
  EXPECT_THAT(
      calls, ElementsAre("train", "epoch 0", "end of batch 0", "end of batch 1",
                         "end of test", "end of epoch 0", "end of train"));
}

}  // namespace
}  // namespace muster
