// Callbacks that save at the same steps while parameter servers keep training.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/callbacks/model_checkpoint.h"
#include "common/learn/train/model.h"
#include "coordinator/parameter_server_strategy.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

constexpr int kEpochs = 4;
constexpr int kSteps = 50;

// Adds one to the bias.
std::vector<StepMetric> CountingStep(const StepTrace& step) {
  const Value prediction = step.Call(step.element[0]);
  const Value count = Cast(CountAlong(prediction, {0}), prediction.dtype());
  step.Minimize(-Sum(prediction) / count);
  return {{"steps", MeanStatistics(prediction * 0.0 + 1.0)}};
}

TEST(SavingCallbacksTest, BothWriteEveryEpoch) {
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/saving_callbacks");
  std::filesystem::remove_all(folder);
  TestCluster cluster(2, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, cluster.Connect());
  Model model = Sequential({Dense(1)});
  ASSERT_OK(model.Compile(*strategy, {.optimizer = Sgd({.learning_rate = 1.0}),
                                      .loss = MeanSquaredError(),
                                      .train_step = CountingStep}));
  ModelCheckpoint checkpoints(
      {.directory = folder + "/checkpoints", .max_to_keep = kEpochs});
  BackupAndRestore backup(
      {.backup_dir = folder + "/backup", .delete_checkpoint = false});
  ASSERT_OK(model
                .Fit(Dataset::FromTensorSlices(
                         {Tensor::Full(DType::kFloat32, {8, 2}, 1),
                          Tensor::Full(DType::kFloat32, {8, 1}, 1)})
                         .Batch(2)
                         .Repeat(),
                     {.epochs = kEpochs,
                      .steps_per_epoch = kSteps,
                      .verbose = Verbosity::kSilent,
                      .callbacks = {&checkpoints, &backup}})
                .status());
  // The two newest backups.
  std::vector<std::string> prefixes = {folder + "/backup/backup-3",
                                       folder + "/backup/backup-4"};
  std::vector<int> epochs = {3, 4};
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    prefixes.push_back(absl::StrCat(folder, "/checkpoints/ckpt-", epoch));
    epochs.push_back(epoch);
  }
  for (size_t i = 0; i < prefixes.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         TensorBundleReader::Open(Disk::Real(), prefixes[i]));
    ASSERT_OK_AND_ASSIGN(const Tensor bias,
                         reader->Read(VariableValueKey("dense/bias")));
    // No step of the next epoch has been scheduled.
    EXPECT_EQ(bias.flat<float>()[0], epochs[i] * kSteps) << prefixes[i];
  }
}

}  // namespace
}  // namespace muster
