// Training steps on a simulated GPU whose products and convolutions libraries
// compute: the results, and the calls to the driver and the libraries, which
// are fakes.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cublas_lt/fake/fake_cublas_lt.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_cudnn.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kBatch = 4;
constexpr int64_t kClasses = 5;
constexpr int64_t kChannels = 8;

const std::vector<VariableHandle>& Variables() {
  static const auto* const kVariables = new std::vector<VariableHandle>{
      {"filters", {DType::kFloat32, {3, 3, 2, kChannels}}},
      {"w", {DType::kFloat32, {4 * 4 * kChannels, 16}}},
      {"b", {DType::kFloat32, {16}}},
      {"w_out", {DType::kFloat32, {16, kClasses}}},
      {"b_out", {DType::kFloat32, {kClasses}}}};
  return *kVariables;
}

// Traces a convolution with uneven padding and two dense layers.
Graph TraceStep() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value images =
      builder.Parameter("images", {DType::kFloat32, {kBatch, 8, 8, 2}});
  const Value labels = builder.Parameter("labels", {DType::kInt64, {kBatch}});
  std::vector<Value> weights;
  std::vector<std::string> names;
  for (const VariableHandle& variable : Variables()) {
    weights.push_back(ReadVariable(builder, variable));
    names.push_back(variable.name);
  }
  const Value features = Relu(Conv2D(
      images, weights[0], {.strides = {2, 2}, .padding = Padding2D::Same()}));
  const Value rows = Reshape(features, {kBatch, 4 * 4 * kChannels});
  const Value hidden = Relu(MatMul(rows, weights[1]) + weights[2]);
  const Value logits = MatMul(hidden, weights[3]) + weights[4];
  const Value loss = Mean(SparseSoftmaxCrossEntropy(logits, labels));
  const auto gradients = VariableGradients(loss, names);
  for (size_t i = 0; i < names.size(); ++i) {
    ApplyGradient(Variables()[i], gradients[i].dense);
  }
  builder.AddResult(loss);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

Tensor Numbers(const Shape& shape, uint64_t seed) {
  Tensor numbers(DType::kFloat32, shape);
  for (int64_t i = 0; i < numbers.element_count(); ++i) {
    numbers.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(seed, i) % 2001) / 1000 - 1;
  }
  return numbers;
}

std::vector<Tensor> Batch() {
  return {Numbers({kBatch, 8, 8, 2}, 6),
          Tensor::FromValues<int64_t>({kBatch}, {0, 4, 2, 1})};
}

// The parameter is true if steps are captured as graphs.
class LibraryStepTest : public ::testing::TestWithParam<bool> {
 protected:
  LibraryStepTest() {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 16 << 20, .piece_bytes = 1 << 20},
         .captures_steps = GetParam()});
    EXPECT_OK(device);
    device_ = *std::move(device);
    kernels_ = CudaKernels(device_.get(), {.cublas_lt = &cublas_lt_.api(),
                                           .cudnn = &cudnn_.api()});
    auto store = DeviceVariableStore::Create(device_.get());
    EXPECT_OK(store);
    on_device_ = *std::move(store);
    for (ReplicaVariables* variables :
         {static_cast<ReplicaVariables*>(&on_host_),
          static_cast<ReplicaVariables*>(on_device_.get())}) {
      EXPECT_OK(variables->SetOptimizer(Sgd({.learning_rate = 0.05})));
      for (const VariableHandle& variable : Variables()) {
        proto::VariableSpec spec;
        spec.set_name(variable.name);
        spec.set_dtype(proto::DT_FLOAT);
        *spec.mutable_shape() = EncodeShape(variable.type.shape);
        *spec.mutable_initializer()->mutable_value() =
            EncodeTensor(Numbers(variable.type.shape, 9));
        EXPECT_OK(variables->Create(spec));
      }
    }
  }

  std::unique_ptr<Executable> CompileOnDevice() {
    auto executable = Executable::Compile(TraceStep(), BuiltinOps(), kernels_,
                                          on_device_.get(),
                                          {.device = device_.get(),
                                           .host_kernels = &CpuKernels(),
                                           .soft_placement = false});
    EXPECT_OK(executable);
    return *std::move(executable);
  }

  SimulatedMachine machine_{{.seed = 1}};
  FakeCublasLt cublas_lt_;
  FakeCudnn cudnn_;
  std::unique_ptr<Device> device_;
  KernelRegistry kernels_;
  LocalVariableStore on_host_;
  std::unique_ptr<DeviceVariableStore> on_device_;
};

INSTANTIATE_TEST_SUITE_P(Graphs, LibraryStepTest, ::testing::Bool());

TEST_P(LibraryStepTest, StepsGiveTheVariablesOfTheHost) {
  const auto on_device = CompileOnDevice();
  ASSERT_OK_AND_ASSIGN(
      const auto on_host,
      Executable::Compile(TraceStep(), BuiltinOps(), CpuKernels(), &on_host_));
  std::vector<Tensor> results;
  std::vector<Tensor> wanted;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(on_device->Run(Batch(), {}, &results));
    ASSERT_OK(on_host->Run(Batch(), {}, &wanted));
    EXPECT_NEAR(results[0].scalar<float>(), wanted[0].scalar<float>(), 1e-4);
  }
  for (const VariableHandle& variable : Variables()) {
    ASSERT_OK_AND_ASSIGN(const Tensor a, on_device_->Read(variable.name));
    ASSERT_OK_AND_ASSIGN(const Tensor b, on_host_.Read(variable.name));
    for (int64_t i = 0; i < a.element_count(); ++i) {
      ASSERT_NEAR(a.ElementAsDouble(i), b.ElementAsDouble(i), 1e-4)
          << variable.name << ", element " << i;
    }
  }
}

std::map<std::string, int64_t> Since(
    const std::map<std::string, int64_t>& before,
    std::map<std::string, int64_t> now) {
  for (const auto& [name, count] : before) now[name] -= count;
  std::erase_if(now, [](const auto& one) { return one.second == 0; });
  return now;
}

TEST_P(LibraryStepTest, ASteadyStepOnlyEnqueuesWork) {
  const auto executable = CompileOnDevice();
  std::vector<Tensor> results;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(executable->Run(Batch(), {}, &results));
  }
  const auto driver_before = machine_.counts();
  const auto cublas_lt_before = cublas_lt_.counts();
  const auto cudnn_before = cudnn_.counts();
  ASSERT_OK(executable->Run(Batch(), {}, &results));
  auto driver = Since(driver_before, machine_.counts());
  for (const char* function :
       {"cuMemCreate", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate",
        "cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"}) {
    EXPECT_EQ(driver[function], 0) << function;
  }
  if (GetParam()) {
    // The captured graph contains the work of the libraries.
    EXPECT_THAT(Since(cublas_lt_before, cublas_lt_.counts()), IsEmpty());
    EXPECT_THAT(Since(cudnn_before, cudnn_.counts()), IsEmpty());
    EXPECT_EQ(driver["cuGraphLaunch"], 1);
    return;
  }
  // Two products with a bias, and the gradients of their four operands.
  EXPECT_THAT(Since(cublas_lt_before, cublas_lt_.counts()),
              ElementsAre(Pair("cublasLtMatmul", 6),
                          Pair("cublasLtMatmulDescSetAttribute", 2)));
  // The convolution and the gradient of its filters.
  EXPECT_THAT(
      Since(cudnn_before, cudnn_.counts()),
      ElementsAre(Pair("cudnnBackendExecute", 2), Pair("cudnnSetStream", 2)));
}

}  // namespace
}  // namespace muster
