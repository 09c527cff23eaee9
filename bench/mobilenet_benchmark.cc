// MobileNetV2 at 224 x 224 in one process: training steps with SGD, or
// evaluation steps, through Model. bench/mobilenet_benchmark.py runs it
// alternately with TensorFlow and PyTorch. The program prints "ready", answers
// each "step" with the time of a step in milliseconds, and prints its peak
// memory in MiB at the end of its input.
//
//   bazel build //bench:mobilenet_benchmark && bench/mobilenet_benchmark.py

#include <cstdint>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/or_die.h"
#include "bench/turns.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/losses.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

Dataset SameBatchForever(int64_t batch) {
  Tensor images(DType::kFloat32, {batch, 224, 224, 3});
  RandomStream random(7);
  for (float& pixel : images.mutable_flat<float>()) {
    pixel = UnitFloat(random.Next64() >> 32);
  }
  Tensor labels(DType::kInt64, {batch});
  for (int64_t& label : labels.mutable_flat<int64_t>()) {
    label = static_cast<int64_t>(random.Below(1000));
  }
  return Dataset::FromTensors({images, labels}).Repeat();
}

int Main(absl::string_view mode, int threads, int64_t batch) {
  const auto strategy = OrDie(DefaultStrategy::Create(
      {.thread_count = threads, .prefetch_batch_count = 0}));
  Model model =
      applications::MobileNetV2({.classifier_activation = Activation::kLinear});
  OkOrDie(model.Compile(*strategy, {.optimizer = Sgd({.learning_rate = 0.01}),
                                    .loss = SparseCategoricalCrossentropy(
                                        {.from_logits = true})}));
  const Dataset data = SameBatchForever(batch);
  constexpr int64_t kStepsMax = 1'000'000;
  Turns turns;
  if (mode == "train") {
    OkOrDie(model
                .Fit(data, {.steps_per_epoch = kStepsMax,
                            .verbose = Verbosity::kSilent,
                            .callbacks = {&turns}})
                .status());
    return 0;
  }
  const auto logs = model.Evaluate(data, {.steps = kStepsMax,
                                          .verbose = Verbosity::kSilent,
                                          .callbacks = {&turns}});
  return absl::IsCancelled(logs.status()) ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "usage: mobilenet_benchmark train|predict THREADS "
                 "BATCH\n");
    return 2;
  }
  return muster::Main(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
