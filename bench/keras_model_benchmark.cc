// A model of Keras in one process. bench/keras_model_benchmark.py runs it
// alternately with TensorFlow.
//
//   keras_model_benchmark step FILE THREADS BATCH
//     Runs training steps on random numbers, with the file's compile options,
//     in the protocol of turns.h.
//   keras_model_benchmark load FILE COUNT
//     Loads the file COUNT times, and prints a line of milliseconds for each.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "bench/turns.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

Tensor RandomNumbers(Shape shape, int64_t batch, uint64_t seed) {
  shape.set_dim(0, batch);
  Tensor tensor(DType::kFloat32, shape);
  RandomStream random(seed);
  for (float& number : tensor.mutable_flat<float>()) {
    number = UnitFloat(random.Next64() >> 32);
  }
  return tensor;
}

void RunSteps(const std::string& path, int threads, int64_t batch) {
  const auto strategy = OrDie(DefaultStrategy::Create(
      {.thread_count = threads, .prefetch_batch_count = 0}));
  Model model = OrDie(LoadModel(*strategy, path));
  const Layer& layer = *model.layer();
  const Dataset data =
      Dataset::FromTensors(
          {RandomNumbers(layer.input_types().front().shape, batch, 7),
           RandomNumbers(layer.output_shape(), batch, 8)})
          .Repeat();
  Turns turns;
  OkOrDie(model
              .Fit(data, {.steps_per_epoch = 1'000'000,
                          .verbose = Verbosity::kSilent,
                          .callbacks = {&turns}})
              .status());
}

void RunLoads(const std::string& path, int count) {
  for (int i = 0; i < count; ++i) {
    const double microseconds = MicrosecondsOf([&] { OrDie(LoadModel(path)); });
    std::printf("%.1f\n", microseconds / 1e3);
  }
}

int Main(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.size() > 1 ? arguments[1] : "";
  int first = 0;
  int second = 0;
  if (mode == "step" && arguments.size() == 5 &&
      absl::SimpleAtoi(arguments[3], &first) &&
      absl::SimpleAtoi(arguments[4], &second)) {
    RunSteps(arguments[2], first, second);
    return 0;
  }
  if (mode == "load" && arguments.size() == 4 &&
      absl::SimpleAtoi(arguments[3], &first)) {
    RunLoads(arguments[2], first);
    return 0;
  }
  std::fprintf(stderr,
               "usage: keras_model_benchmark step FILE THREADS BATCH | load "
               "FILE COUNT\n");
  return 2;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(std::vector<std::string>(argv, argv + argc));
}
