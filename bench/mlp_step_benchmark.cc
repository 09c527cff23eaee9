// One training step of an MNIST classifier, 784-256-256-10 with relu, batch 64,
// SGD, in one process: forward, backward and update. For comparison, its eight
// matrix products in oneDNN called directly, which are the lower limit of any
// runtime. Budget: 0.8 ms.
//
//   bazel run //bench:mlp_step_benchmark

#include <cstdint>
#include <cstdio>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/mlp_step.h"
#include "bench/or_die.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/tensor/dtype.h"
#include "dnnl.hpp"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr int kBatch = 64;
constexpr int kStepCount = 1000;
constexpr int kTurnCount = 50;
constexpr double kBudgetMicros = 800;

// One matrix product in oneDNN.
class Product {
 public:
  Product(int rows, int inner, int columns, bool transpose_a, bool transpose_b)
      : a_(rows * inner, 0.5f), b_(inner * columns, 0.5f), c_(rows * columns) {
    using dnnl::memory;
    const auto type = memory::data_type::f32;
    const memory::desc a(
        {rows, inner}, type,
        transpose_a ? memory::dims{1, rows} : memory::dims{inner, 1});
    const memory::desc b(
        {inner, columns}, type,
        transpose_b ? memory::dims{1, inner} : memory::dims{columns, 1});
    const memory::desc c({rows, columns}, type, memory::dims{columns, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, c),
                                            attributes, engine_);
    primitive_ = dnnl::matmul(desc);
    arguments_ = {
        {DNNL_ARG_SRC, memory(a, engine_, a_.data())},
        {DNNL_ARG_WEIGHTS, memory(b, engine_, b_.data())},
        {DNNL_ARG_DST, memory(c, engine_, c_.data())},
        {DNNL_ARG_SCRATCHPAD, memory(desc.scratchpad_desc(), engine_)}};
  }
  Product(const Product&) = delete;

  void Run() { primitive_.execute(stream_, arguments_); }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<float> a_, b_, c_;
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

std::vector<std::unique_ptr<Product>> StepProducts() {
  std::vector<std::unique_ptr<Product>> products;
  for (int layer = 0; layer < kMlpLayerCount; ++layer) {
    const int in = kMlpWidths[layer];
    const int out = kMlpWidths[layer + 1];
    const auto add = [&](auto... arguments) {
      products.push_back(std::make_unique<Product>(arguments...));
    };
    add(kBatch, in, out, false, false);  // Forward.
    add(in, kBatch, out, true, false);   // Gradient of the kernel.
    if (layer > 0) add(kBatch, out, in, false, true);  // Gradient of the input.
  }
  return products;
}

void Measure(int thread_count) {
  LocalVariableStore store;
  proto::Optimizer sgd;
  sgd.mutable_sgd()->set_learning_rate(0.01);
  OkOrDie(store.SetOptimizer(sgd));
  const auto executable = OrDie(
      Executable::Compile(TraceMlpStep(&store), BuiltinOps(), CpuKernels(),
                          &store, {.intra_op_thread_count = thread_count}));
  std::vector<Tensor> arguments = {
      Tensor::Full(DType::kFloat32, {kBatch, kMlpWidths[0]}, 0.5),
      Tensor::Zeros(DType::kInt64, {kBatch})};
  std::vector<Tensor> results;
  const auto step = [&] { OkOrDie(executable->Run(arguments, {}, &results)); };
  UseOpenMpThreads(thread_count);
  const auto products = StepProducts();
  const auto multiply = [&] {
    // Steps use one OpenMP thread, because they divide their products
    // themselves.
    UseOpenMpThreads(thread_count);
    for (const auto& product : products) product->Run();
  };

  for (int i = 0; i < 20; ++i) step();
  const int64_t allocations_before = AllocationCount();
  step();
  const int64_t step_allocations = AllocationCount() - allocations_before;
  multiply();
  const int64_t before_products = AllocationCount();
  multiply();
  const int64_t product_allocations = AllocationCount() - before_products;

  std::vector<double> step_micros;
  std::vector<double> product_micros;
  // Alternates in groups of many steps, so that the threads of each are awake.
  for (int i = 0; i < kStepCount; i += kTurnCount) {
    for (int turn = 0; turn < kTurnCount; ++turn) {
      step_micros.push_back(MicrosecondsOf(step));
    }
    for (int turn = 0; turn < kTurnCount; ++turn) {
      product_micros.push_back(MicrosecondsOf(multiply));
    }
  }
  const double step_median = Median(step_micros);
  const double product_median = Median(product_micros);
  std::printf("MLP 784-256-256-10, batch %d, SGD, %d thread(s)\n", kBatch,
              thread_count);
  std::printf("  step                 %8.1f us   %.2f of the budget, %.0f us\n",
              step_median, step_median / kBudgetMicros, kBudgetMicros);
  std::printf("  its matrix products  %8.1f us   ratio of the step %.2f\n",
              product_median, step_median / product_median);
  std::printf("  allocations          %8lld per step, oneDNN alone %lld\n",
              static_cast<long long>(step_allocations),
              static_cast<long long>(product_allocations));
}

}  // namespace
}  // namespace muster

int main() {
  muster::Measure(1);
  muster::Measure(2);
  return 0;
}
