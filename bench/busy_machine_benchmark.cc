// Measures how much other processes on the same cores slow down a step whose
// matrix products are divided among threads. The products are those of a
// recurrent layer, one after the other, each about 20 microseconds long. For
// comparison, oneDNN divides the same products among OpenMP threads, which wait
// at a barrier after each product. The load is 0, 1 and 2 threads that are
// always busy.
//
//   busy_machine_benchmark [THREADS]

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "dnnl.hpp"

namespace muster {
namespace {

constexpr int64_t kRows = 32;
constexpr int64_t kInner = 128;
constexpr int64_t kColumns = 512;
constexpr int kProductsPerStep = 240;  // 80 time steps, forward and backward.
constexpr int kStepCount = 40;
constexpr int kRounds = 3;
constexpr int kOthersMax = 2;

class Ours {
 public:
  explicit Ours(int thread_count) {
    auto kernel = CpuKernels().Create(
        {"MatMul", {}, {a_.type(), b_.type()}, {product_.type()}},
        thread_count);
    MUSTER_CHECK(kernel.ok());
    kernel_ = *std::move(kernel);
  }

  void Run() {
    const Tensor* const inputs[] = {&a_, &b_};
    Tensor* const outputs[] = {&product_};
    MUSTER_CHECK(kernel_->Run({.inputs = inputs, .outputs = outputs}).ok());
  }

 private:
  const Tensor a_ = Tensor::Full(DType::kFloat32, {kRows, kInner}, 0.5);
  const Tensor b_ = Tensor::Full(DType::kFloat32, {kInner, kColumns}, 0.5);
  Tensor product_ = Tensor::Zeros(DType::kFloat32, {kRows, kColumns});
  std::unique_ptr<Kernel> kernel_;
};

class Direct {
 public:
  explicit Direct(int thread_count) : thread_count_(thread_count) {
    using dnnl::memory;
    UseOpenMpThreads(thread_count_);
    const auto matrix = [](int64_t rows, int64_t columns) {
      return memory::desc({rows, columns}, memory::data_type::f32,
                          memory::format_tag::ab);
    };
    const memory::desc a = matrix(kRows, kInner);
    const memory::desc b = matrix(kInner, kColumns);
    const memory::desc product = matrix(kRows, kColumns);
    primitive_ = dnnl::matmul({{a, b, product}, engine_});
    arguments_ = {{DNNL_ARG_SRC, memory(a, engine_)},
                  {DNNL_ARG_WEIGHTS, memory(b, engine_)},
                  {DNNL_ARG_DST, memory(product, engine_)}};
  }

  void Run() {
    UseOpenMpThreads(thread_count_);
    primitive_.execute(stream_, arguments_);
  }

 private:
  const int thread_count_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Returns the time of a step in milliseconds.
template <typename Products>
double StepMillis(Products* products) {
  std::vector<double> micros;
  for (int step = 0; step < kStepCount; ++step) {
    micros.push_back(MicrosecondsOf([&] {
      for (int i = 0; i < kProductsPerStep; ++i) products->Run();
    }));
  }
  return Median(micros) / 1000;
}

void Main(int thread_count) {
  Ours ours(thread_count);
  Ours alone(1);
  Direct direct(thread_count);
  std::printf(
      "%d products of 32 x 128 x 512, ms; beside: number of other threads that "
      "are always busy\nbeside  1 thread  %d threads  OpenMP, %d threads  "
      "ratio to "
      "ours\n",
      kProductsPerStep, thread_count, thread_count);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> others;
  for (int other_count = 0; other_count <= kOthersMax; ++other_count) {
    std::vector<double> alone_ms, ours_ms, direct_ms;
    for (int round = 0; round < kRounds; ++round) {
      alone_ms.push_back(StepMillis(&alone));
      ours_ms.push_back(StepMillis(&ours));
      direct_ms.push_back(StepMillis(&direct));
    }
    const double divided = Median(ours_ms);
    const double open_mp = Median(direct_ms);
    std::printf("%6d  %8.2f  %9.2f  %17.2f  %17.2f\n", other_count,
                Median(alone_ms), divided, open_mp, open_mp / divided);
    std::fflush(stdout);
    others.emplace_back([&] {
      while (!is_over) {
      }
    });
  }
  is_over = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Main(argc > 1 ? std::atoi(argv[1]) : 2);
  return 0;
}
