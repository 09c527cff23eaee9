// Measures the memory bandwidth and the launch time of a GPU, and how close the
// optimizer's update and a training step come to these limits. Prints one JSON
// object per line, as the peers do (bench/peers/torch_gpu.py).
//
//   bazel run -c opt //bench:gpu_benchmark                 the machine's GPU
//   bazel run -c opt //bench:gpu_benchmark -- --simulated  a simulated GPU
//
// With --simulated, the program first counts the driver calls of a steady
// training step, without and with CUDA graphs.
//
// Budgets: Adam over 100 MiB of variables at 0.85 of the copy bandwidth; 3 us
// for each launch of a step, and 1.2 us with CUDA graphs.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "bench/measure.h"
#include "bench/mlp_step.h"
#include "bench/or_die.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/cuda/cuda_libraries.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/core/base/random.h"
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr double kAdamBudget = 0.85;
constexpr double kLaunchBudgetMicros = 3;
constexpr double kCapturedLaunchBudgetMicros = 1.2;
constexpr int kBatch = 64;

// The sizes of the measurements. They are smaller on a simulated GPU, whose
// times are meaningless.
struct Sizes {
  int64_t copy_bytes = 256 << 20;
  int64_t variable_count = 25;
  int64_t variable_elements = 1 << 20;
  int64_t matrix_extent = 4096;
  int chain_length = 1000;
  int repetitions = 30;
};

void Report(absl::string_view bench, absl::string_view unit, double value,
            absl::string_view rest = "") {
  std::printf(R"({"bench": "%s", "peer": "muster", "unit": "%s", )"
              R"("median": %.4g%s})"
              "\n",
              std::string(bench).c_str(), std::string(unit).c_str(), value,
              std::string(rest).c_str());
  std::fflush(stdout);
}

const char* Suffix(bool with_graphs) { return with_graphs ? ".graphs" : ""; }

void Drain(DeviceStream* stream) {
  OkOrDie(
      stream->Drain(Clock::Real()->Now() + absl::Seconds(60), "a benchmark"));
}

// Returns the median time in microseconds from calling `work`, which enqueues
// on `stream`, until the device is done. Divide it by the amount of work
// enqueued.
double MicrosOf(const Sizes& sizes, DeviceStream* stream,
                const std::function<void()>& work) {
  std::vector<double> micros;
  for (int i = 0; i < sizes.repetitions + 3; ++i) {
    const double one = MicrosecondsOf([&] {
      work();
      Drain(stream);
    });
    if (i >= 3) micros.push_back(one);
  }
  return Median(std::move(micros));
}

// Returns the bandwidth of copies on the device, counting bytes read and
// written.
double MeasureCopies(const Sizes& sizes, Device* device, DeviceStream* stream) {
  const auto allocate = [&] {
    return OrDie(
        device->memory().Allocate(sizes.copy_bytes, {"copy", "bench"}));
  };
  const auto from = allocate();
  const auto to = allocate();
  const auto pinned = OrDie(device->pinned_memory().Allocate(sizes.copy_bytes));
  constexpr int kCopies = 10;
  const auto gigabytes_per_second = [&](const void* a, void* b) {
    const double micros = MicrosOf(sizes, stream, [&] {
      for (int i = 0; i < kCopies; ++i) {
        OkOrDie(stream->Copy(a, b, sizes.copy_bytes));
      }
    });
    return kCopies * static_cast<double>(sizes.copy_bytes) / micros / 1e3;
  };
  const double inside = 2 * gigabytes_per_second(from->data(), to->data());
  Report("gpu.copy.device_to_device", "GB/s", inside);
  Report("gpu.copy.pinned_to_device", "GB/s",
         gigabytes_per_second(pinned->data(), to->data()));
  Report("gpu.copy.device_to_pinned", "GB/s",
         gigabytes_per_second(from->data(), pinned->data()));
  return inside;
}

proto::VariableSpec FloatVariable(const std::string& name, int64_t elements) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(proto::DT_FLOAT);
  spec.mutable_shape()->add_dim(elements);
  spec.mutable_initializer()->mutable_constant();
  return spec;
}

// Measures Adam on all variables in one launch. It reads the gradient, the
// value and two moments, and writes all but the gradient.
void MeasureAdam(const Sizes& sizes, double copy_bandwidth, Device* device,
                 DeviceStream* stream) {
  const auto store = OrDie(DeviceVariableStore::Create(device));
  OkOrDie(store->SetOptimizer(Adam()));
  std::vector<VariableUse> uses;
  std::vector<Tensor> gradients;
  for (int64_t i = 0; i < sizes.variable_count; ++i) {
    const std::string name = absl::StrCat("variable_", i);
    OkOrDie(store->Create(FloatVariable(name, sizes.variable_elements)));
    uses.push_back({.name = name,
                    .is_updated = true,
                    .updates = {{.position = static_cast<int>(i),
                                 .kind = UpdateKind::kApplyGradient}}});
    const Shape shape = {sizes.variable_elements};
    auto buffer = OrDie(device->memory().Allocate(
        sizes.variable_elements * sizeof(float), {"gradient", "bench"}));
    OkOrDie(stream->Fill(buffer->data(), 0, buffer->size_bytes()));
    gradients.emplace_back(DType::kFloat32, shape, std::move(buffer));
  }
  const auto session = OrDie(store->OpenDeviceSession(uses, device, stream));
  uint64_t step = 0;
  constexpr int kUpdates = 5;
  const double micros = MicrosOf(sizes, stream, [&] {
    for (int update = 0; update < kUpdates; ++update) {
      OkOrDie(session->Begin(++step));
      for (size_t i = 0; i < gradients.size(); ++i) {
        OkOrDie(session->Update(static_cast<int>(i), UpdateKind::kApplyGradient,
                                gradients[i], {}));
      }
      OkOrDie(session->Commit());
    }
  });
  const double bytes = 7.0 * sizeof(float) * sizes.variable_count *
                       sizes.variable_elements * kUpdates;
  const double bandwidth = bytes / micros / 1e3;
  Report("gpu.adam.100_mib", "GB/s", bandwidth,
         absl::StrCat(R"(, "of_copy": )", bandwidth / copy_bandwidth,
                      R"(, "budget": )", kAdamBudget));
  Report("gpu.adam.100_mib.time", "us", micros / kUpdates);
}

std::unique_ptr<Executable> CompileOn(Device* device, Graph graph,
                                      const KernelRegistry& kernels,
                                      VariableSessionFactory* variables) {
  return OrDie(Executable::Compile(std::move(graph), BuiltinOps(), kernels,
                                   variables,
                                   {.device = device,
                                    .host_kernels = &CpuKernels(),
                                    .soft_placement = false}));
}

double StepMicros(int steps, Executable* executable,
                  const std::vector<Tensor>& arguments) {
  std::vector<Tensor> results;
  std::vector<double> micros;
  for (int i = 0; i < steps + 5; ++i) {
    const double one = MicrosecondsOf(
        [&] { OkOrDie(executable->Run(arguments, {}, &results)); });
    if (i >= 5) micros.push_back(one);
  }
  return Median(std::move(micros));
}

// Measures chains of one op on tiny tensors, which are not fused, so the time
// is that of the launches. A product calls cuBLASLt, a softmax a kernel of
// Muster.
void MeasureLaunches(const Sizes& sizes, const KernelRegistry& kernels,
                     Device* device, bool with_graphs) {
  device->CaptureSteps(with_graphs);
  const auto chain = [&](bool is_softmax, int length) {
    GraphBuilder builder(&BuiltinOps(), "chain");
    const Value x = builder.Parameter("x", {DType::kFloat32, {4, 4}});
    Value y = x;
    for (int i = 0; i < length; ++i) y = is_softmax ? Softmax(y) : MatMul(y, x);
    builder.AddResult(y);
    const auto executable =
        CompileOn(device, OrDie(std::move(builder).Build()), kernels, nullptr);
    return StepMicros(sizes.repetitions, executable.get(),
                      {Tensor::Zeros(DType::kFloat32, {4, 4})});
  };
  for (const bool is_softmax : {false, true}) {
    const double base = chain(is_softmax, 1);
    const double micros = (chain(is_softmax, sizes.chain_length) - base) /
                          static_cast<double>(sizes.chain_length - 1);
    const absl::string_view op = is_softmax ? "softmax" : "matmul";
    Report(absl::StrCat("gpu.step.one_", op, Suffix(with_graphs)), "us", base);
    Report(absl::StrCat("gpu.launch.", op, Suffix(with_graphs)), "us", micros,
           absl::StrCat(R"(, "budget": )", with_graphs
                                               ? kCapturedLaunchBudgetMicros
                                               : kLaunchBudgetMicros));
  }
}

// Measures products of large matrices, without the time of copying them.
void MeasureMatMul(const Sizes& sizes, const KernelRegistry& kernels,
                   Device* device, DType dtype) {
  const int64_t n = sizes.matrix_extent;
  Tensor matrix(DType::kFloat32, {n, n});
  RandomStream random(5);
  for (float& element : matrix.mutable_flat<float>()) {
    // Products of such matrices neither grow nor vanish.
    element = (UnitFloat(random.Next64() >> 32) - 0.5f) *
              std::sqrt(12.0f / static_cast<float>(n));
  }
  const auto chain = [&](int length) {
    GraphBuilder builder(&BuiltinOps(), "matmul");
    const Value x =
        Cast(builder.Parameter("x", {DType::kFloat32, {n, n}}), dtype);
    Value product = x;
    for (int i = 0; i < length; ++i) product = MatMul(product, x);
    builder.AddResult(Sum(Cast(product, DType::kFloat32)));
    const auto executable =
        CompileOn(device, OrDie(std::move(builder).Build()), kernels, nullptr);
    return StepMicros(sizes.repetitions / 5 + 1, executable.get(), {matrix});
  };
  constexpr int kProducts = 16;
  const double micros = (chain(1 + kProducts) - chain(1)) / kProducts;
  Report(absl::StrCat("gpu.matmul.", DTypeString(dtype)), "TFLOP/s",
         2.0 * n * n * n / micros / 1e6);
}

void MeasureMlp(const Sizes& sizes, const KernelRegistry& kernels,
                Device* device, bool with_graphs) {
  device->CaptureSteps(with_graphs);
  for (const bool is_adam : {false, true}) {
    const auto store = OrDie(DeviceVariableStore::Create(device));
    OkOrDie(store->SetOptimizer(is_adam ? Adam() : Sgd()));
    const auto executable =
        CompileOn(device, TraceMlpStep(store.get()), kernels, store.get());
    const double micros =
        StepMicros(10 * sizes.repetitions, executable.get(),
                   {Tensor::Full(DType::kFloat32, {kBatch, kMlpWidths[0]}, 0.5),
                    Tensor::Zeros(DType::kInt64, {kBatch})});
    Report(absl::StrCat("gpu.mlp_step", is_adam ? ".adam" : "",
                        Suffix(with_graphs)),
           "us", micros);
  }
}

// Prints the calls of the driver that enqueue a steady step, by function.
void ReportCalls(absl::string_view bench, bool is_adam, bool with_graphs) {
  SimulatedMachine machine({});
  const auto device = OrDie(Device::Create(
      &machine.driver(),
      {.memory = {.limit_bytes = 64 << 20}, .captures_steps = with_graphs}));
  const KernelRegistry kernels = CudaKernels(device.get());
  const auto store = OrDie(DeviceVariableStore::Create(device.get()));
  OkOrDie(store->SetOptimizer(is_adam ? Adam() : Sgd()));
  const auto executable =
      CompileOn(device.get(), TraceMlpStep(store.get()), kernels, store.get());
  const std::vector<Tensor> arguments = {
      Tensor::Full(DType::kFloat32, {kBatch, kMlpWidths[0]}, 0.5),
      Tensor::Zeros(DType::kInt64, {kBatch})};
  std::vector<Tensor> results;
  // Two steps are in progress at the same time, as in training.
  for (int i = 0; i < 6; ++i) {
    OkOrDie(executable->Start(arguments, {}));
    if (i > 0) OkOrDie(executable->Finish(&results));
  }
  const auto before = machine.counts();
  OkOrDie(executable->Start(arguments, {}));
  auto calls = machine.counts();
  for (const auto& [function, count] : before) calls[function] -= count;
  while (executable->started_count() > 0) OkOrDie(executable->Finish(&results));
  std::string rest =
      absl::StrCat(R"(, "graphs": ")", with_graphs ? "auto" : "off", R"(")");
  for (const auto& [function, count] : calls) {
    if (count == 0 || function == "cuCtxSetCurrent") continue;
    absl::StrAppend(&rest, R"(, ")", function, R"(": )", count);
  }
  Report(
      bench, "launches",
      static_cast<double>(calls["cuLaunchKernelEx"] + calls["cuGraphLaunch"]),
      rest);
}

int Main(bool is_simulated) {
  Sizes sizes;
  if (is_simulated) {
    for (const bool is_adam : {false, true}) {
      for (const bool with_graphs : {false, true}) {
        ReportCalls(is_adam ? "gpu.calls.mlp_step.adam" : "gpu.calls.mlp_step",
                    is_adam, with_graphs);
      }
    }
    OkOrDie(DeviceSet::OfProcess().UseSimulatedDevices(1));
    sizes = {.copy_bytes = 1 << 20,
             .variable_count = 3,
             .variable_elements = 1000,
             .matrix_extent = 16,
             .chain_length = 10,
             .repetitions = 2};
  }
  Device* const device = OrDie(DeviceSet::OfProcess().FindDevice(0));
  const CudaLibraries libraries = FindCudaLibraries(*device);
  std::fprintf(stderr, "%s\nlibraries: %s\n",
               device->description().ToString().c_str(),
               libraries.ToString().c_str());
  const auto stream = OrDie(device->CreateStream());
  const KernelRegistry kernels = CudaKernels(device, libraries);
  const double bandwidth = MeasureCopies(sizes, device, stream.get());
  MeasureAdam(sizes, bandwidth, device, stream.get());
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    MeasureMatMul(sizes, kernels, device, dtype);
  }
  for (const bool with_graphs : {false, true}) {
    MeasureLaunches(sizes, kernels, device, with_graphs);
    MeasureMlp(sizes, kernels, device, with_graphs);
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(argc > 1 && std::strcmp(argv[1], "--simulated") == 0);
}
