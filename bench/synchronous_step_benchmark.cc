// The overhead of synchronization: a training step of an MNIST classifier,
// 784-256-256-10, batch 64, with one replica, and with two replicas of one
// process with 64 examples each, one thread per replica. Both use the steps of
// Fit() and alternate. Each line is the median over rounds of the median step.
// Budget: 50 us more than alone.
//
//   bazel run //bench:synchronous_step_benchmark

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 64;
constexpr int kStepCount = 300;
constexpr int kRoundCount = 15;
constexpr double kBudgetMicros = 50;

// Repeats one batch, so that the input takes no time.
Dataset Batches(int64_t batch_size) {
  return Dataset::FromTensors(
             {Tensor::Full(DType::kFloat32, {batch_size, 784}, 0.5),
              Tensor::Zeros(DType::kInt64, {batch_size})})
      .Repeat();
}

// Returns the median time of a step in microseconds.
double MedianStep(Strategy& strategy, int64_t batch_size) {
  Model model =
      Sequential({Dense(256, {.activation = Activation::kRelu}),
                  Dense(256, {.activation = Activation::kRelu}), Dense(10)});
  const absl::Status compiled = model.Compile(
      strategy, {.optimizer = Sgd({.learning_rate = 0.01}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  if (!compiled.ok()) std::exit(1);
  const History history =
      OrDie(model.Fit(Batches(batch_size), {.steps_per_epoch = kStepCount,
                                            .verbose = Verbosity::kSilent}));
  return absl::ToDoubleMicroseconds(history.step_durations.Percentile(50));
}

void Measure() {
  std::vector<double> alone;
  std::vector<double> together;
  std::vector<double> differences;
  for (int round = 0; round < kRoundCount; ++round) {
    const auto local = OrDie(DefaultStrategy::Create(
        {.thread_count = 1, .prefetch_batch_count = 0}));
    alone.push_back(MedianStep(*local, kBatch));
    const auto mirrored = OrDie(
        MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"},
                                  .thread_count = 1,
                                  .input = {.global_batch_size = 2 * kBatch,
                                            .prefetch_step_count = 0}}));
    together.push_back(MedianStep(*mirrored, 2 * kBatch));
    differences.push_back(together.back() - alone.back());
  }
  const double difference = Median(differences);
  std::printf("MLP 784-256-256-10, batch %d per replica, SGD, 1 thread each\n",
              static_cast<int>(kBatch));
  std::printf("  alone                %8.1f us\n", Median(alone));
  std::printf("  two replicas         %8.1f us\n", Median(together));
  std::printf("  overhead            %8.1f us   %.2f of the budget, %.0f us\n",
              difference, difference / kBudgetMicros, kBudgetMicros);
}

}  // namespace
}  // namespace muster

int main() {
  muster::Measure();
  return 0;
}
