// Steps of an MLP on one device of a PJRT plugin, for tpu_step_benchmark.py.
// Usage: tpu_step_benchmark BATCH STEPS_PER_TURN [DEVICES
// [STEPS_PER_EXECUTION]]. Takes turns as turn_taking.py asks.

#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/measure.h"
#include "bench/mlp_step.h"
#include "bench/or_die.h"
#include "common/compute/graph/graph.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/tpu/tpu_step.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/strategy/tpu/tpu_variable_store.h"

namespace muster {
namespace {

constexpr int kWarmUpSteps = 20;

void TakeTurns(int64_t batch, int step_count, int device_count,
               int group_size) {
  const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
  const std::shared_ptr<TpuSystem> system =
      OrDie(InitializeTpuSystem({.plugin = plugin == nullptr ? "cpu" : plugin,
                                 .cpu_device_count = device_count}));
  TpuVariableStore variables(system);
  OkOrDie(variables.SetOptimizer(Sgd({.learning_rate = 0.01})));
  const Graph graph = TraceMlpStep(&variables);
  const std::unique_ptr<TpuStep> step = OrDie(
      TpuStep::Create(graph, system, &variables, TpuStep::Results::kSummed));
  const Tensor x = Tensor::Full(DType::kFloat32, {batch, kMlpWidths[0]}, 0.1);
  const Tensor labels = Tensor::Full(DType::kInt64, {batch}, 3);
  const std::vector<Element> group(group_size, Element{x, labels});
  const auto run = [&](int count) {
    for (int done = 0; done < count;) {
      const int size = step->GroupSize(group_size);
      OkOrDie(step->Start(absl::MakeConstSpan(group).first(size),
                          static_cast<uint64_t>(done)));
      OkOrDie(step->Finish().status());
      done += size;
    }
  };
  run(kWarmUpSteps * group_size);
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << MicrosecondsOf([&] { run(step_count); }) / 1000 << std::endl;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::cout << static_cast<double>(usage.ru_maxrss) / 1024 << std::endl;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: tpu_step_benchmark BATCH STEPS_PER_TURN [DEVICES "
                 "[STEPS_PER_EXECUTION]]\n";
    return 1;
  }
  muster::TakeTurns(std::atoll(argv[1]), std::atoi(argv[2]),
                    argc > 3 ? std::atoi(argv[3]) : 1,
                    argc > 4 ? std::atoi(argv[4]) : 1);
  return 0;
}
