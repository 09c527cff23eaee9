// The effect of saving on concurrent steps: a 784-2048-1024-10 classifier with
// Adam (3.7 M parameters; 44 MB with optimizer slots), batch 64, one thread.
// Rounds of a hundred steps with and without a backup in the middle alternate.
// Each line is the median time of a round. Budget: 10 % more.
//
//   bazel run //bench:checkpoint_step_benchmark FOLDER

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/measure.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

constexpr int kStepCount = 100;
constexpr int kRoundCount = 9;
constexpr int64_t kBatch = 64;
constexpr double kBudget = 1.10;

Dataset Batches() {
  return Dataset::FromTensors({Tensor::Full(DType::kFloat32, {784}, 0.5),
                               Tensor::Zeros(DType::kInt32, {1})})
      .Repeat(kBatch * kStepCount)
      .Batch(kBatch);
}

// Returns the time of the steps of one call of Fit(), in microseconds.
double TrainRound(Model& model, const Dataset& data, Callback* callback) {
  FitOptions options{.verbose = Verbosity::kSilent};
  if (callback != nullptr) options.callbacks = {callback};
  const absl::StatusOr<History> history = model.Fit(data, options);
  if (!history.ok()) {
    std::cerr << history.status() << std::endl;
    std::exit(1);
  }
  return history->train_seconds * 1e6;
}

int Run(const std::string& folder) {
  const auto strategy = DefaultStrategy::Create({.thread_count = 1}).value();
  Model model =
      Sequential({Dense(2048, {.activation = Activation::kRelu}),
                  Dense(1024, {.activation = Activation::kRelu}), Dense(10)});
  const absl::Status compiled = model.Compile(
      *strategy,
      {.optimizer = Adam(),
       .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  if (!compiled.ok()) return 1;
  const Dataset data = Batches();
  TrainRound(model, data, nullptr);
  std::vector<double> without;
  std::vector<double> with;
  for (int round = 0; round < kRoundCount; ++round) {
    without.push_back(TrainRound(model, data, nullptr));
    BackupAndRestore backup({.backup_dir = folder + "/backup",
                             .save_each_epoch = false,
                             .save_freq = kStepCount / 2});
    with.push_back(TrainRound(model, data, &backup));
  }
  const double ratio = Median(with) / Median(without);
  std::printf("%d steps                 %8.1f ms\n", kStepCount,
              Median(without) / 1e3);
  std::printf("with a save               %8.1f ms  %.3fx  %s\n",
              Median(with) / 1e3, ratio, ratio <= kBudget ? "ok" : "OVER");
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: checkpoint_step_benchmark FOLDER" << std::endl;
    return 2;
  }
  return muster::Run(argv[1]);
}
