#include "common/learn/train/callbacks/backup_and_restore.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/early_stopping.h"
#include "common/learn/train/callbacks/learning_rate_scheduler.h"
#include "common/learn/train/model.h"
#include "common/learn/train/weights_hash.h"
#include "common/net/process/preemption_notice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kEpochs = 3;
constexpr int kStepsPerEpoch = 6;

// 22 rows in batches of 4: the last one is smaller.
Dataset Rows(int64_t count) {
  Tensor x(DType::kFloat32, {count, 3});
  Tensor y(DType::kFloat32, {count, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = static_cast<float>((i * 7) % 11) / 11;
  }
  for (int64_t i = 0; i < count; ++i) {
    y.mutable_flat<float>()[i] = static_cast<float>(i % 2);
  }
  return Dataset::FromTensorSlices({x, y});
}

// Fails, or asks the process to end, after so many steps.
class DescribeProblem final : public Callback {
 public:
  DescribeProblem(int64_t step_count, bool is_preemption)
      : step_count_(step_count), is_preemption_(is_preemption) {}

  absl::Status OnTrainBatchEnd(Model&, int64_t, const Logs&) override {
    if (++steps_ != step_count_) return absl::OkStatus();
    if (!is_preemption_) return absl::AbortedError("killed");
    PreemptionNotice::OfProcess().Deliver();
    return absl::OkStatus();
  }
  // After the backup of this step was begun.
  int turn() const override { return 3; }

 private:
  const int64_t step_count_;
  const bool is_preemption_;
  int64_t steps_ = 0;
};

// Asks the process to end in the validation of an epoch.
class PreemptedValidation final : public Callback {
 public:
  explicit PreemptedValidation(int epoch) : epoch_(epoch) {}

  absl::Status OnEpochBegin(Model&, int epoch) override {
    is_epoch_ = epoch == epoch_;
    return absl::OkStatus();
  }
  absl::Status OnTestBatchEnd(Model&, int64_t, const Logs&) override {
    if (!is_epoch_) return absl::OkStatus();
    if (++steps_ == 1) PreemptionNotice::OfProcess().Deliver();
    return absl::OkStatus();
  }
  int64_t steps() const { return steps_; }

 private:
  const int epoch_;
  bool is_epoch_ = false;
  int64_t steps_ = 0;
};

struct End {
  std::string sha256;
  History history;
  std::optional<std::string> restored;
};

enum class Kind { kDefault, kMirrored, kOneDevice };

std::unique_ptr<Strategy> MakeStrategy(Kind kind) {
  switch (kind) {
    case Kind::kDefault:
      return DefaultStrategy::Create({.thread_count = 1}).value();
    case Kind::kMirrored:
      return MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"},
                                       .deterministic_micro_batches = 2})
          .value();
    case Kind::kOneDevice:
      return OneDeviceStrategy::Create({.deterministic_micro_batches = 2})
          .value();
  }
  return nullptr;
}

// What a process does from its start on: a new model, new data and new
// callbacks.
absl::StatusOr<End> Train(Kind kind, BackupAndRestoreOptions options,
                          Callback* trouble) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy(kind);
  Model model =
      Sequential({Dense(8, {.activation = Activation::kRelu}), Dropout(0.3),
                  Dense(1, {.activation = Activation::kSigmoid})});
  RETURN_IF_ERROR(model.Compile(*strategy, {.optimizer = Adam(),
                                            .loss = BinaryCrossentropy(),
                                            .metrics = {BinaryAccuracy()},
                                            .seed = 5}));
  BackupAndRestore backup(std::move(options));
  LearningRateScheduler decay([](int, double rate) { return rate * 0.5; });
  EarlyStopping stopping({.patience = 100});
  FitOptions fit{.epochs = kEpochs,
                 .validation_data = Rows(10).Batch(2),
                 .verbose = Verbosity::kSilent,
                 // The backup need not be listed last.
                 .callbacks = {&backup, &decay, &stopping}};
  DescribeProblem none(0, /*is_preemption=*/false);
  fit.callbacks.push_back(trouble == nullptr ? &none : trouble);
  End end;
  ASSIGN_OR_RETURN(end.history,
                   model.Fit(Rows(22).Shuffle(22, {.seed = 9}).Batch(4), fit));
  end.restored = backup.restored();
  ASSIGN_OR_RETURN(const std::vector<Tensor> values, model.GetWeights());
  std::map<std::string, Tensor> weights;
  for (size_t i = 0; i < values.size(); ++i) {
    weights[model.weights()[i].name()] = values[i];
  }
  end.sha256 = HashWeights(weights);
  return end;
}

std::string TestFolder() {
  const std::string folder = absl::StrCat(
      std::getenv("TEST_TMPDIR"), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::remove_all(folder);
  return folder;
}

// Without any trouble.
End Undisturbed(Kind kind) {
  auto end = Train(kind, {.backup_dir = TestFolder()}, nullptr);
  EXPECT_OK(end);
  return *std::move(end);
}

void ExpectSame(const End& a, const End& b) {
  EXPECT_EQ(a.sha256, b.sha256);
  EXPECT_EQ(a.history.epoch, b.history.epoch);
  EXPECT_EQ(a.history.history, b.history.history);
  EXPECT_EQ(a.history.step_count, b.history.step_count);
  EXPECT_EQ(a.history.example_count, b.history.example_count);
}

void GoesOnAfterEveryStep(Kind before, Kind after) {
  const End undisturbed = Undisturbed(before);
  for (int step = 1; step <= kEpochs * kStepsPerEpoch; ++step) {
    SCOPED_TRACE(absl::StrCat("after step ", step));
    const BackupAndRestoreOptions options = {.backup_dir = TestFolder(),
                                             .save_freq = 1};
    DescribeProblem trouble(step, /*is_preemption=*/false);
    EXPECT_THAT(Train(before, options, &trouble),
                StatusIs(absl::StatusCode::kAborted));
    ASSERT_OK_AND_ASSIGN(const End end, Train(after, options, nullptr));
    EXPECT_TRUE(end.restored.has_value());
    ExpectSame(undisturbed, end);
    EXPECT_TRUE(std::filesystem::is_empty(options.backup_dir));
  }
}

TEST(BackupAndRestoreTest, OneProcessGoesOnToTheSameBits) {
  GoesOnAfterEveryStep(Kind::kDefault, Kind::kDefault);
}

TEST(BackupAndRestoreTest, ReplicasGoOnToTheSameBitsInAnotherNumber) {
  GoesOnAfterEveryStep(Kind::kMirrored, Kind::kOneDevice);
}

TEST(BackupAndRestoreTest, EpochsThatHadEndedAreNotTrainedAgain) {
  const End undisturbed = Undisturbed(Kind::kDefault);
  const BackupAndRestoreOptions options = {.backup_dir = TestFolder()};
  DescribeProblem trouble(kStepsPerEpoch + 2, /*is_preemption=*/false);
  EXPECT_THAT(Train(Kind::kDefault, options, &trouble),
              StatusIs(absl::StatusCode::kAborted));
  // A second time, before anything more has been saved.
  DescribeProblem again(2, /*is_preemption=*/false);
  EXPECT_THAT(Train(Kind::kDefault, options, &again),
              StatusIs(absl::StatusCode::kAborted));
  ASSERT_OK_AND_ASSIGN(const End end, Train(Kind::kDefault, options, nullptr));
  EXPECT_THAT(end.restored, testing::Optional(HasSubstr("backup-1")));
  ExpectSame(undisturbed, end);
}

TEST(BackupAndRestoreTest, PreemptedTrainingIsSavedAtItsLastStep) {
  for (const Kind kind : {Kind::kDefault, Kind::kMirrored}) {
    const End undisturbed = Undisturbed(kind);
    const BackupAndRestoreOptions options = {.backup_dir = TestFolder(),
                                             .save_each_epoch = false,
                                             .save_before_preemption = true};
    DescribeProblem trouble(4, /*is_preemption=*/true);
    // The step after the notice is the last.
    EXPECT_THAT(Train(kind, options, &trouble),
                StatusIs(absl::StatusCode::kCancelled,
                         HasSubstr("in epoch 1 after step 5")));
    PreemptionNotice::OfProcess().Reset();
    ASSERT_OK_AND_ASSIGN(const End end, Train(kind, options, nullptr));
    EXPECT_TRUE(end.restored.has_value());
    ExpectSame(undisturbed, end);
  }
}

TEST(BackupAndRestoreTest, PreemptedValidationsAreSavedBetweenTwoSteps) {
  for (const Kind kind : {Kind::kDefault, Kind::kMirrored}) {
    const End undisturbed = Undisturbed(kind);
    const BackupAndRestoreOptions options = {.backup_dir = TestFolder(),
                                             .save_each_epoch = false,
                                             .save_before_preemption = true};
    // The second process is told to end in the same validation.
    for (int life = 0; life < 2; ++life) {
      PreemptedValidation trouble(/*epoch=*/1);
      EXPECT_THAT(Train(kind, options, &trouble),
                  StatusIs(absl::StatusCode::kCancelled,
                           HasSubstr("in epoch 2 after step 6")));
      // The step after the notice is the last of five.
      EXPECT_EQ(trouble.steps(), 2);
      PreemptionNotice::OfProcess().Reset();
    }
    ASSERT_OK_AND_ASSIGN(const End end, Train(kind, options, nullptr));
    EXPECT_TRUE(end.restored.has_value());
    ExpectSame(undisturbed, end);
  }
}

void CopyFiles(const SimulatedDisk& disk, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const std::string& path : disk.Paths()) {
    std::ofstream(absl::StrCat(folder, "/", BaseName(path)), std::ios::binary)
        << disk.Get(path);
  }
}

// The disk loses what was not synced, at every operation of every save.
TEST(BackupAndRestoreTest, PowerFailuresLeaveOneBackupToGoOnFrom) {
  using Crash = SimulatedDisk::Crash;
  const End undisturbed = Undisturbed(Kind::kDefault);
  std::set<std::string> restored;
  bool has_stopped = true;
  for (int64_t operation = 1; has_stopped; ++operation) {
    SimulatedDisk disk;
    disk.StopAtOperation(operation);
    ASSERT_OK(Train(
        Kind::kDefault,
        {.backup_dir = "backup", .delete_checkpoint = false, .disk = &disk},
        nullptr));
    has_stopped = disk.operation_count() >= operation;
    for (const Crash crash : {Crash::kUnsyncedLost, Crash::kUnsyncedAtRandom}) {
      SCOPED_TRACE(absl::StrCat("operation ", operation, ", crash ",
                                static_cast<int>(crash)));
      const std::string folder = TestFolder();
      CopyFiles(*disk.After(crash, /*seed=*/operation), folder);
      ASSERT_OK_AND_ASSIGN(const End end, Train(Kind::kDefault,
                                                {.backup_dir = folder,
                                                 .save_each_epoch = false,
                                                 .save_freq = 1000},
                                                nullptr));
      const std::string prefix = end.restored.value_or("none");
      restored.insert(std::string(BaseName(prefix)));
      ExpectSame(undisturbed, end);
    }
  }
  EXPECT_THAT(restored,
              ElementsAre("backup-1", "backup-2", "backup-3", "none"));
}

TEST(BackupAndRestoreTest, DamagedBackupIsPassedOver) {
  const End undisturbed = Undisturbed(Kind::kDefault);
  const BackupAndRestoreOptions options = {.backup_dir = TestFolder()};
  DescribeProblem trouble(2 * kStepsPerEpoch + 1, /*is_preemption=*/false);
  EXPECT_THAT(Train(Kind::kDefault, options, &trouble),
              StatusIs(absl::StatusCode::kAborted));
  const std::string newest =
      absl::StrCat(options.backup_dir, "/backup-2.data-00000-of-00002");
  ASSERT_TRUE(std::filesystem::exists(newest));
  std::filesystem::resize_file(newest, 10);
  ASSERT_OK_AND_ASSIGN(const End end, Train(Kind::kDefault, options, nullptr));
  EXPECT_THAT(end.restored, testing::Optional(HasSubstr("backup-1")));
  ExpectSame(undisturbed, end);
}

TEST(BackupAndRestoreTest, AnotherModelsBackupIsRefused) {
  const BackupAndRestoreOptions options = {.backup_dir = TestFolder(),
                                           .save_freq = 1};
  DescribeProblem trouble(1, /*is_preemption=*/false);
  EXPECT_THAT(Train(Kind::kDefault, options, &trouble),
              StatusIs(absl::StatusCode::kAborted));
  Model model = Sequential({Dense(8), Dense(8), Dense(1)});
  ASSERT_OK(model.Compile({.optimizer = Adam(), .loss = BinaryCrossentropy()}));
  BackupAndRestore backup(options);
  EXPECT_THAT(model.Fit(Rows(22).Batch(4), {.verbose = Verbosity::kSilent,
                                            .callbacks = {&backup}}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("it lacks \"dense_2/kernel\""),
                             HasSubstr("did you mean \"dense_1/kernel\"?"),
                             HasSubstr("\"dense_1/kernel\" is float32[8,1] "
                                       "there and float32[8,8] here"))));
}

TEST(BackupAndRestoreTest, OptionsThatNeverSaveAreRefused) {
  EXPECT_THAT(
      BackupAndRestore::CheckOptions({}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("backup_dir")));
  EXPECT_THAT(
      BackupAndRestore::CheckOptions(
          {.backup_dir = "b", .save_each_epoch = false}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("never saves")));
  EXPECT_THAT(
      BackupAndRestore::CheckOptions({.backup_dir = "b", .save_freq = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("save_freq")));
}

}  // namespace
}  // namespace muster
