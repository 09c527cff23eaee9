// The overhead of the executor: repeated runs of a graph of 1,000 ops on
// tensors of four elements. Budget: 2 us per op, no allocation per step.
//
//   bazel run //bench:executor_benchmark

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

constexpr int kOpCount = 1000;
constexpr int kStepCount = 2000;
constexpr double kBudgetNanosPerOp = 2000;

int Main() {
  GraphBuilder builder(&BuiltinOps(), "thousand_ops");
  const Value x = builder.Parameter("x", {DType::kFloat32, {4}});
  Value value = x;
  for (int i = 0; i < kOpCount; ++i) {
    value = i % 2 == 0 ? value + x : value - x;
  }
  builder.AddResult(value);

  std::unique_ptr<Executable> executable;
  const double compile_micros = MicrosecondsOf([&] {
    executable =
        OrDie(Executable::Compile(OrDie(std::move(builder).Build()),
                                  BuiltinOps(), CpuKernels(), nullptr));
  });
  const std::vector<Tensor> arguments = {Tensor::Full(DType::kFloat32, {4}, 1)};
  std::vector<Tensor> results;
  const auto run = [&] {
    if (!executable->Run(arguments, {}, &results).ok()) std::exit(1);
  };
  const double plan_micros = MicrosecondsOf(run);

  std::vector<double> micros;
  micros.reserve(kStepCount);
  const int64_t allocations_before = AllocationCount();
  for (int i = 0; i < kStepCount; ++i) micros.push_back(MicrosecondsOf(run));
  const int64_t allocations = AllocationCount() - allocations_before;

  const double nanos_per_op = Median(micros) * 1000 / kOpCount;
  std::printf("executor, %d ops of 4 elements\n", kOpCount);
  std::printf("  compile            %10.0f us\n", compile_micros);
  std::printf("  first run (plan)   %10.0f us\n", plan_micros);
  std::printf("  per op             %10.1f ns   %.3f of the budget, %.0f ns\n",
              nanos_per_op, nanos_per_op / kBudgetNanosPerOp,
              kBudgetNanosPerOp);
  std::printf("  allocations        %10.2f per step   budget 0\n",
              static_cast<double>(allocations) / kStepCount);
  return 0;
}

}  // namespace
}  // namespace muster

int main() { return muster::Main(); }
