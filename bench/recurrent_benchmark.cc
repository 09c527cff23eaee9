// A recurrent layer and a dense one: training steps with SGD, through Model.
// bench/recurrent_benchmark.py runs it alternately with TensorFlow and PyTorch
// (turns.h).
//
//   bazel build //bench:recurrent_benchmark && bench/recurrent_benchmark.py

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "bench/or_die.h"
#include "bench/turns.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

constexpr int64_t kTime = 128;
constexpr int64_t kFeatures = 128;
constexpr int64_t kUnits = 128;
constexpr int64_t kClasses = 10;

Dataset SameBatchForever(int64_t batch) {
  Tensor sequences(DType::kFloat32, {batch, kTime, kFeatures});
  RandomStream random(7);
  for (float& number : sequences.mutable_flat<float>()) {
    number = UnitFloat(random.Next64() >> 32);
  }
  Tensor labels(DType::kInt64, {batch});
  for (int64_t& label : labels.mutable_flat<int64_t>()) {
    label = static_cast<int64_t>(random.Below(kClasses));
  }
  return Dataset::FromTensors({sequences, labels}).Repeat();
}

int Main(absl::string_view kind, int threads, int64_t batch) {
  const auto strategy = OrDie(DefaultStrategy::Create(
      {.thread_count = threads, .prefetch_batch_count = 0}));
  Model model(Sequential(
      {kind == "lstm" ? LSTM(kUnits) : GRU(kUnits), Dense(kClasses)}));
  OkOrDie(model.Compile(*strategy, {.optimizer = Sgd({.learning_rate = 0.01}),
                                    .loss = SparseCategoricalCrossentropy(
                                        {.from_logits = true})}));
  Turns turns;
  OkOrDie(model
              .Fit(SameBatchForever(batch), {.steps_per_epoch = 1'000'000,
                                             .verbose = Verbosity::kSilent,
                                             .callbacks = {&turns}})
              .status());
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: recurrent_benchmark lstm|gru THREADS BATCH\n");
    return 2;
  }
  return muster::Main(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
