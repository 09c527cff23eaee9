// The time that a step with a program takes longer than the plugin alone: a
// program that adds 1 to 16 numbers, called through PJRT and by a graph.
// Budget: 50 us over PJRT.
//
//   export $(tests/setup_tools.sh)
//   bazel run //bench:program_call_benchmark

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/program_ops.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/compute/programs/program.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

constexpr int kWarmupCalls = 200;
constexpr int kCalls = 5000;

constexpr char kIncrement[] = R"(
func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<16xf32>
  %y = stablehlo.add %x, %one : tensor<16xf32>
  return %y : tensor<16xf32>
})";

// Returns the median of the calls of `body` in microseconds.
template <typename Body>
double MedianMicroseconds(const Body& body) {
  for (int i = 0; i < kWarmupCalls; ++i) body();
  std::vector<double> micros;
  for (int i = 0; i < kCalls; ++i) micros.push_back(MicrosecondsOf(body));
  return Median(std::move(micros));
}

double MeasurePlugin(const Tensor& x) {
  const auto client = OrDie(internal::ProgramClient(1));
  const auto program = OrDie(internal::CompileProgram("one", kIncrement, 1));
  return MedianMicroseconds([&] {
    const auto input = OrDie(client->CopyToDevice(x));
    const auto results = OrDie(program->Execute({input.get()}));
    OrDie(results[0]->ToHost(absl::Now() + absl::Minutes(1)));
  });
}

double MeasureGraph(const Tensor& x) {
  Program program;
  program.name = "one";
  program.types = {{x.type()}, {x.type()}};
  program.variants = {{program.types, kIncrement, ""}};
  GraphBuilder builder(&BuiltinOps(), "step");
  builder.AddResult(RunProgram({builder.Parameter("x", x.type())}, program)[0]);
  LocalVariableStore store;
  const auto executable = OrDie(Executable::Compile(
      OrDie(std::move(builder).Build()), BuiltinOps(), CpuKernels(), &store));
  std::vector<Tensor> results;
  return MedianMicroseconds(
      [&] { OkOrDie(executable->Run({x}, {}, &results)); });
}

void Measure() {
  const Tensor x = Tensor::Zeros(DType::kFloat32, {16});
  const double plugin = MeasurePlugin(x);
  const double graph = MeasureGraph(x);
  std::printf("PJRT alone %.1f us, a graph %.1f us, difference %.1f us", plugin,
              graph, graph - plugin);
  std::printf(" (budget 50 us)\n");
}

}  // namespace
}  // namespace muster

int main() {
  muster::Measure();
  return 0;
}
