// Trains on synchronous workers, with a backup every few steps. Prints the
// result in the last line: "ended with <SHA-256 of the weights> loss <loss>".

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/weights_hash.h"
#include "muster.h"

namespace muster {
namespace {

constexpr int64_t kExampleCount = 775;  // The last batch has 7 rows.

Dataset Examples() {
  Tensor x(DType::kFloat32, {kExampleCount, 12});
  Tensor y(DType::kInt32, {kExampleCount});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = static_cast<float>((i * 37) % 101) / 101;
  }
  for (int64_t i = 0; i < kExampleCount; ++i) {
    y.mutable_flat<int32_t>()[i] = static_cast<int32_t>((i * i) % 5);
  }
  return Dataset::FromTensorSlices({x, y});
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy,
                   MultiWorkerMirroredStrategy::Create(
                       task, {.deterministic_micro_batches = 6}));
  Model model =
      Sequential({Dense(48, {.activation = Activation::kRelu}), Dropout(0.3),
                  Dense(24, {.activation = Activation::kTanh}), Dense(5)});
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 3e-3}),
                  .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                  .metrics = {SparseCategoricalAccuracy()},
                  .seed = 11}));
  // Only the chief needs the folder.
  const std::string folder =
      strategy->is_chief() ? absl::StrCat(task.options().run_dir, "/backup")
                           : "/nowhere";
  BackupAndRestore backup(
      {.backup_dir = folder, .save_freq = 7, .save_before_preemption = true});
  ASSIGN_OR_RETURN(
      const History history,
      model.Fit(Examples().Shuffle(kExampleCount, {.seed = 3}).Batch(32),
                {.epochs = 150,
                 .validation_data = Examples().Take(101).Batch(32),
                 .verbose = strategy->is_chief() ? Verbosity::kLines
                                                 : Verbosity::kSilent,
                 .callbacks = {&backup}}));
  if (!strategy->is_chief()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Tensor> values, model.GetWeights());
  std::map<std::string, Tensor> weights;
  for (size_t i = 0; i < values.size(); ++i) {
    weights[model.weights()[i].name()] = values[i];
  }
  std::cout << "ended with " << HashWeights(weights)
            << absl::StrFormat(" loss %.17g epochs %d steps %d",
                               history.history.at("loss").back(),
                               history.epoch.size(), history.step_count)
            << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, muster::Train);
}
