#include "common/learn/train/callbacks/model_checkpoint.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/monitor.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_state.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// y = w * x with x = 1 and y = 0; w halves with each of the two steps of an
// epoch, so that losses are 1 + 1/4, 1/16 + 1/64, ... halved.
Dataset TwoRows() {
  return Dataset::FromTensorSlices({Tensor::Full(DType::kFloat32, {2, 1}, 1),
                                    Tensor::Zeros(DType::kFloat32, {2, 1})})
      .Batch(1);
}

class ModelCheckpointTest : public ::testing::Test {
 protected:
  ModelCheckpointTest() {
    folder_ = absl::StrCat(
        std::getenv("TEST_TMPDIR"), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    EXPECT_OK(model_.Compile({.optimizer = Sgd({.learning_rate = 0.25}),
                              .loss = MeanSquaredError()}));
  }

  absl::Status Fit(ModelCheckpointOptions options, int epochs) {
    options.output = &output_;
    ModelCheckpoint checkpoint(options);
    return model_
        .Fit(TwoRows(), {.epochs = epochs,
                         .verbose = Verbosity::kSilent,
                         .callbacks = {&checkpoint}})
        .status();
  }

  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }

  float WeightIn(const std::string& prefix) const {
    auto reader = TensorBundleReader::Open(Disk::Real(), prefix);
    EXPECT_OK(reader);
    if (!reader.ok()) return -1;
    auto value = (*reader)->Read(VariableValueKey("dense/kernel"));
    EXPECT_OK(value);
    return value.ok() ? value->flat<float>()[0] : -1;
  }

  std::string folder_;
  std::ostringstream output_;
  Model model_ =
      Sequential({Dense(1, {.use_bias = false, .kernel_initializer = Ones()})});
};

TEST_F(ModelCheckpointTest, SavesAfterEachEpochUnderItsName) {
  ASSERT_OK(
      Fit({.filepath = Path("w-{epoch:02d}-{loss:.3f}"), .verbose = 1}, 2));
  EXPECT_EQ(WeightIn(Path("w-01-0.625")), 0.25f);
  EXPECT_EQ(WeightIn(Path("w-02-0.039")), 0.0625f);
  EXPECT_EQ(
      output_.str(),
      absl::StrCat("\nEpoch 1: saving model to ", Path("w-01-0.625"),
                   "\n\nEpoch 2: saving model to ", Path("w-02-0.039"), "\n"));
}

TEST_F(ModelCheckpointTest, WithinEpochsBatchesAreCounted) {
  ASSERT_OK(Fit({.filepath = Path("{epoch}-{batch}"), .save_freq = 3}, 2));
  EXPECT_EQ(WeightIn(Path("2-1")), 0.125f);
  EXPECT_FALSE(std::filesystem::exists(Path("1-2.index")));
}

TEST_F(ModelCheckpointTest, StepsAreCountedHoweverManyAreOneExecution) {
  for (const int steps_per_execution : {1, 2, 4, 12}) {
    SCOPED_TRACE(steps_per_execution);
    ASSERT_OK(model_.Compile({.optimizer = Sgd({.learning_rate = 0.25}),
                              .loss = MeanSquaredError(),
                              .steps_per_execution = steps_per_execution}));
    const std::string folder = Path(absl::StrCat(steps_per_execution));
    std::filesystem::create_directories(folder);
    ModelCheckpoint checkpoint({.filepath = folder + "/{batch}.weights.h5",
                                .save_weights_only = true,
                                .save_freq = 4});
    ASSERT_OK(model_
                  .Fit(TwoRows().Repeat(6), {.verbose = Verbosity::kSilent,
                                             .callbacks = {&checkpoint}})
                  .status());
    for (const int batch : {4, 8, 12}) {
      // Keras, too, saves once where several are due.
      const bool is_saved = steps_per_execution < 12 || batch == 12;
      EXPECT_EQ(std::filesystem::exists(
                    absl::StrCat(folder, "/", batch, ".weights.h5")),
                is_saved)
          << batch;
    }
  }
}

TEST_F(ModelCheckpointTest, OnlyTheBestIsSaved) {
  ASSERT_OK(Fit({.filepath = Path("best"),
                 .monitor = "loss",
                 .mode = MonitorMode::kMax,
                 .verbose = 1,
                 .save_best_only = true,
                 .save_weights_only = true},
                2));
  EXPECT_EQ(WeightIn(Path("best")), 0.25f);
  EXPECT_EQ(
      output_.str(),
      absl::StrCat(
          "\nEpoch 1: loss improved from None to 0.62500, saving model "
          "to ",
          Path("best"), "\n\nEpoch 2: loss did not improve from 0.62500\n"));
}

TEST_F(ModelCheckpointTest, NothingIsSavedThatIsNoBetterThanTheThreshold) {
  ASSERT_OK(Fit({.filepath = Path("best"),
                 .monitor = "loss",
                 .save_best_only = true,
                 .initial_value_threshold = 0.01},
                2));
  EXPECT_FALSE(std::filesystem::exists(Path("best.index")));
}

TEST_F(ModelCheckpointTest, DirectoryKeepsTheLastOnes) {
  ASSERT_OK(Fit({.directory = folder_, .max_to_keep = 2}, 4));
  EXPECT_THAT(LatestCheckpoint(Disk::Real(), folder_),
              IsOkAndHolds(HasSubstr("ckpt-4")));
  EXPECT_TRUE(std::filesystem::exists(Path("ckpt-3.index")));
  EXPECT_FALSE(std::filesystem::exists(Path("ckpt-2.index")));
  // The folder serves as a prefix.
  ASSERT_OK(model_.SetWeights({Tensor::Full(DType::kFloat32, {1, 1}, 9)}));
  ASSERT_OK_AND_ASSIGN(const auto state, model_.RestoreCheckpoint(folder_));
  EXPECT_EQ(state.message().epoch(), 4);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model_.GetWeights());
  EXPECT_EQ(weights[0].flat<float>()[0], 1.0f / 256);
  EXPECT_THAT(model_.iterations(), IsOkAndHolds(8));
}

TEST_F(ModelCheckpointTest, WeightsAloneComeWithoutTheRest) {
  ASSERT_OK(Fit({.filepath = Path("w"), .save_weights_only = true}, 1));
  EXPECT_THAT(
      model_.RestoreCheckpoint(Path("w")),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("holds variables only, without a training state")));
  ASSERT_OK(model_.SetWeights({Tensor::Full(DType::kFloat32, {1, 1}, 9)}));
  ASSERT_OK(model_.LoadWeights(Path("w")));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model_.GetWeights());
  EXPECT_EQ(weights[0].flat<float>()[0], 0.25f);
}

TEST_F(ModelCheckpointTest, TheBestModelIsAFileOfKeras) {
  ASSERT_OK(Fit({.filepath = Path("{epoch:02d}.keras"),
                 .monitor = "loss",
                 .mode = MonitorMode::kMax,
                 .save_best_only = true},
                2));
  EXPECT_FALSE(std::filesystem::exists(Path("02.keras")));
  ASSERT_OK_AND_ASSIGN(Model loaded, LoadModel(Path("01.keras")));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, loaded.GetWeights());
  EXPECT_EQ(weights[0].flat<float>()[0], 0.25f);
  // Compiled, and with the optimizer's state.
  EXPECT_THAT(loaded.learning_rate(), IsOkAndHolds(0.25));
  EXPECT_THAT(loaded.iterations(), IsOkAndHolds(2));
}

TEST_F(ModelCheckpointTest, WeightsAloneAreAFileOfKeras) {
  ASSERT_OK(Fit({.filepath = Path("w.weights.h5"),
                 .save_weights_only = true,
                 .save_freq = 3},
                2));
  ASSERT_OK(model_.SetWeights({Tensor::Full(DType::kFloat32, {1, 1}, 9)}));
  ASSERT_OK(model_.LoadWeights(Path("w.weights.h5")));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model_.GetWeights());
  EXPECT_EQ(weights[0].flat<float>()[0], 0.125f);
  EXPECT_FALSE(std::filesystem::exists(Path("w.weights.h5.index")));
}

TEST_F(ModelCheckpointTest, AFileOfKerasThatCannotBeWrittenDoesNotEndTraining) {
  // A folder is in its place.
  ASSERT_TRUE(std::filesystem::create_directories(Path("m.keras/full")));
  EXPECT_OK(Fit({.filepath = Path("m.keras")}, 2));
  EXPECT_TRUE(std::filesystem::is_directory(Path("m.keras/full")));
}

TEST_F(ModelCheckpointTest, FullDiskDoesNotEndTraining) {
  SimulatedDisk disk;
  ASSERT_OK(Fit({.directory = "run", .disk = &disk}, 1));
  int64_t used_bytes = 0;
  for (const std::string& path : disk.Paths()) {
    used_bytes += static_cast<int64_t>(disk.Get(path).size());
  }
  disk.set_capacity_bytes(used_bytes + 100);
  ASSERT_OK(Fit({.directory = "run", .disk = &disk}, 3));
  // What was there before is there still, and nothing beside it.
  EXPECT_THAT(LatestCheckpoint(&disk, "run"), IsOkAndHolds("run/ckpt-1"));
  auto reader = TensorBundleReader::Open(&disk, "run/ckpt-1");
  ASSERT_OK(reader);
  EXPECT_OK((*reader)->Verify());
  EXPECT_THAT(disk.Paths(), Not(testing::Contains(HasSubstr("ckpt-2"))));
  // With room again the next one is written.
  disk.set_capacity_bytes(1 << 20);
  ASSERT_OK(Fit({.directory = "run", .disk = &disk}, 1));
  EXPECT_THAT(LatestCheckpoint(&disk, "run"), IsOkAndHolds(Not("run/ckpt-1")));
}

TEST_F(ModelCheckpointTest, OptionsAreChecked) {
  const auto refused = [](const ModelCheckpointOptions& options,
                          const char* why) {
    EXPECT_THAT(ModelCheckpoint::CheckOptions(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({}, "filepath or directory");
  refused({.filepath = "a", .directory = "b"}, "not both");
  refused({.filepath = "a", .save_freq = 0}, "save_freq");
  refused({.directory = "a", .max_to_keep = 0}, "max_to_keep");
  refused({.filepath = "a.keras", .save_weights_only = true}, "*.weights.h5");
  refused({.filepath = "a.weights.h5"}, "*.keras");
  refused({.filepath = "a.h5"}, "Keras 2");
  EXPECT_OK(ModelCheckpoint::CheckOptions({.filepath = "a"}));
  EXPECT_OK(ModelCheckpoint::CheckOptions({.filepath = "{epoch}.keras"}));
}

}  // namespace
}  // namespace muster
