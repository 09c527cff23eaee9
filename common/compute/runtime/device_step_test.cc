// Training steps on simulated GPUs whose variables are in device memory: the
// driver calls that the host makes, and the errors that it reports.

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
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
#include "common/core/device/pinned_memory.h"
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

constexpr int64_t kWords = 7;
constexpr int64_t kLength = 4;
constexpr int64_t kWidth = 3;
constexpr int64_t kClasses = 5;
constexpr int64_t kRows = 6;
// Columns of an argument that is large enough for an upload. The step uses only
// the first of them.
constexpr int64_t kManyColumns = 1 << 16;

const std::vector<VariableHandle> &Variables() {
  static const auto *const kVariables = new std::vector<VariableHandle>{
      {"table", {DType::kFloat32, {kWords, kWidth}}},
      {"w", {DType::kFloat32, {kLength * kWidth, kClasses}}},
      {"b", {DType::kFloat32, {kClasses}}}};
  return *kVariables;
}

// Traces a dense layer on rows of a table or, without a table, on numbers.
Graph TraceStep(bool has_table, int64_t columns = kLength * kWidth) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x =
      builder.Parameter("x", {has_table ? DType::kInt64 : DType::kFloat32,
                              {kRows, has_table ? kLength : columns}});
  const Value labels = builder.Parameter("labels", {DType::kInt64, {kRows}});
  const auto &variables = Variables();
  const Value features =
      has_table
          ? Reshape(GatherVariable(variables[0], x), {kRows, kLength * kWidth})
          : Slice(x, {0, 0}, {kRows, kLength * kWidth});
  const Value logits = MatMul(features, ReadVariable(builder, variables[1])) +
                       ReadVariable(builder, variables[2]);
  const Value loss = Mean(SparseSoftmaxCrossEntropy(logits, labels));
  std::vector<std::string> names;
  for (size_t i = has_table ? 0 : 1; i < variables.size(); ++i) {
    names.push_back(variables[i].name);
  }
  const auto gradients = VariableGradients(loss, names);
  for (size_t i = 0; i < names.size(); ++i) {
    const VariableHandle &variable =
        variables[variables.size() - names.size() + i];
    if (gradients[i].sparse.has_value()) {
      ApplySparseGradient(variable, gradients[i].sparse->values,
                          gradients[i].sparse->indices);
    } else {
      ApplyGradient(variable, gradients[i].dense);
    }
  }
  builder.AddResult(loss);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

std::vector<Tensor> Batch(bool has_table, int64_t columns = kLength * kWidth) {
  Tensor labels(DType::kInt64, {kRows});
  for (int64_t i = 0; i < kRows; ++i) {
    labels.mutable_flat<int64_t>()[i] = i % kClasses;
  }
  if (has_table) {
    Tensor words(DType::kInt64, {kRows, kLength});
    for (int64_t i = 0; i < words.element_count(); ++i) {
      words.mutable_flat<int64_t>()[i] =
          static_cast<int64_t>(FoldIn(5, i) % kWords);
    }
    return {words, labels};
  }
  Tensor x(DType::kFloat32, {kRows, columns});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(6, i) % 2001) / 1000 - 1;
  }
  return {x, labels};
}

// The parameters are a seed, and whether steps are captured as graphs.
class DeviceStepTest
    : public ::testing::TestWithParam<std::tuple<uint64_t, bool>> {
 protected:
  DeviceStepTest() : machine_({.seed = std::get<0>(GetParam())}) {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 8 << 20, .piece_bytes = 1 << 20},
         .captures_steps = has_graphs()});
    EXPECT_OK(device);
    device_ = *std::move(device);
    kernels_ = CudaKernels(device_.get());
    auto store = DeviceVariableStore::Create(device_.get());
    EXPECT_OK(store);
    on_device_ = *std::move(store);
    for (ReplicaVariables *variables :
         {static_cast<ReplicaVariables *>(&on_host_),
          static_cast<ReplicaVariables *>(on_device_.get())}) {
      EXPECT_OK(variables->SetOptimizer(Adam({.learning_rate = 0.01})));
      for (const VariableHandle &variable : Variables()) {
        Tensor value(DType::kFloat32, variable.type.shape);
        for (int64_t i = 0; i < value.element_count(); ++i) {
          value.mutable_flat<float>()[i] =
              static_cast<float>(FoldIn(9, i) % 2001) / 1000 - 1;
        }
        proto::VariableSpec spec;
        spec.set_name(variable.name);
        spec.set_dtype(proto::DT_FLOAT);
        *spec.mutable_shape() = EncodeShape(variable.type.shape);
        *spec.mutable_initializer()->mutable_value() = EncodeTensor(value);
        EXPECT_OK(variables->Create(spec));
      }
    }
  }

  static bool has_graphs() { return std::get<1>(GetParam()); }

  absl::StatusOr<std::unique_ptr<Executable>> CompileOnDevice(
      bool has_table, int64_t columns = kLength * kWidth) {
    return Executable::Compile(
        TraceStep(has_table, columns), BuiltinOps(), kernels_, on_device_.get(),
        {.device = device_.get(), .host_kernels = &CpuKernels()});
  }
  absl::StatusOr<std::unique_ptr<Executable>> CompileOnHost(
      bool has_table, int64_t columns = kLength * kWidth) {
    return Executable::Compile(TraceStep(has_table, columns), BuiltinOps(),
                               CpuKernels(), &on_host_);
  }

  // Returns the number of driver calls that `work` makes, by function.
  std::map<std::string, int64_t> CallsOf(absl::FunctionRef<void()> work) {
    const auto before = machine_.counts();
    work();
    auto calls = machine_.counts();
    for (const auto &[function, count] : before) calls[function] -= count;
    return calls;
  }

  std::map<std::string, int64_t> CallsOfSteadyStep(bool has_table) {
    auto executable = CompileOnDevice(has_table);
    EXPECT_OK(executable);
    const std::vector<Tensor> arguments = Batch(has_table);
    std::vector<Tensor> results;
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK((*executable)->Run(arguments, {}, &results));
    }
    return CallsOf(
        [&] { EXPECT_OK((*executable)->Run(arguments, {}, &results)); });
  }

  void ExpectSameVariables(double tolerance) {
    for (const VariableHandle &variable : Variables()) {
      ASSERT_OK_AND_ASSIGN(const Tensor a, on_device_->Read(variable.name));
      ASSERT_OK_AND_ASSIGN(const Tensor b, on_host_.Read(variable.name));
      for (int64_t i = 0; i < a.element_count(); ++i) {
        ASSERT_NEAR(a.ElementAsDouble(i), b.ElementAsDouble(i), tolerance)
            << variable.name << ", element " << i;
      }
    }
  }

  SimulatedMachine machine_;
  std::unique_ptr<Device> device_;
  KernelRegistry kernels_;
  LocalVariableStore on_host_;
  std::unique_ptr<DeviceVariableStore> on_device_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceStepTest,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Bool()));

TEST_P(DeviceStepTest, SteadyStepCopiesItsArgumentsAndResultsOnly) {
  auto calls = CallsOfSteadyStep(/*has_table=*/false);
  for (const char *function :
       {"cuMemCreate", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate",
        "cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"}) {
    EXPECT_EQ(calls[function], 0) << function;
  }
  // Copies of two arguments and the loss, but not of variables or gradients.
  EXPECT_EQ(calls["cuMemcpyAsync"], has_graphs() ? 0 : 3);
  // Forward and backward, then one launch that updates all variables.
  if (has_graphs()) {
    EXPECT_EQ(calls["cuGraphLaunch"], 1);
    EXPECT_EQ(calls["cuLaunchKernelEx"], 1);
  }
  // The end of the step, for which the host waits to read the loss, and the end
  // of the updates, for which it does not wait.
  EXPECT_EQ(calls["cuEventRecord"], 2);
}

TEST_P(DeviceStepTest, SteadyStepWithATableCopiesNoMore) {
  auto calls = CallsOfSteadyStep(/*has_table=*/true);
  for (const char *function :
       {"cuMemCreate", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate"}) {
    EXPECT_EQ(calls[function], 0) << function;
  }
  EXPECT_EQ(calls["cuMemcpyAsync"], has_graphs() ? 0 : 3);
  EXPECT_EQ(calls["cuEventRecord"], 2);
}

TEST_P(DeviceStepTest, StepsGiveTheVariablesOfTheHost) {
  for (const bool has_table : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const auto on_device, CompileOnDevice(has_table));
    ASSERT_OK_AND_ASSIGN(const auto on_host, CompileOnHost(has_table));
    std::vector<Tensor> results;
    std::vector<Tensor> wanted;
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(on_device->Run(Batch(has_table), {}, &results));
      ASSERT_OK(on_host->Run(Batch(has_table), {}, &wanted));
      EXPECT_NEAR(results[0].scalar<float>(), wanted[0].scalar<float>(), 1e-5);
    }
    ExpectSameVariables(1e-5);
  }
}

TEST_P(DeviceStepTest, DataErrorsMatchTheHostAndChangeNothing) {
  ASSERT_OK_AND_ASSIGN(const auto on_device, CompileOnDevice(true));
  ASSERT_OK_AND_ASSIGN(const auto on_host, CompileOnHost(true));
  std::vector<Tensor> results;
  std::vector<Tensor> wrong_word = Batch(true);
  wrong_word[0].mutable_flat<int64_t>()[5] = -1;
  std::vector<Tensor> wrong_label = Batch(true);
  wrong_label[1].mutable_flat<int64_t>()[2] = kClasses;
  for (const std::vector<Tensor> &arguments : {wrong_word, wrong_label}) {
    const absl::Status expected = on_host->Run(arguments, {}, &results);
    EXPECT_FALSE(expected.ok());
    EXPECT_EQ(on_device->Run(arguments, {}, &results), expected);
    ExpectSameVariables(0);
    EXPECT_EQ(on_device_->UpdateCount("w").value(), 0);
  }
  ASSERT_OK(on_device->Run(Batch(true), {}, &results));
  ASSERT_OK(on_host->Run(Batch(true), {}, &results));
  ExpectSameVariables(1e-6);
}

// The host waits for the results of a step while the next one runs.
TEST_P(DeviceStepTest, SteadyStepsBeginWithoutTheHost) {
  for (const bool has_table : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const auto executable, CompileOnDevice(has_table));
    ASSERT_TRUE(executable->overlaps_steps());
    const std::vector<Tensor> arguments = Batch(has_table);
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) {
      ASSERT_OK(executable->Start(arguments, {}));
      if (i > 0) {
        ASSERT_OK(executable->Finish(&results));
      }
    }
    const int64_t pageable_copies = machine_.pageable_copy_count();
    auto calls = CallsOf([&] { EXPECT_OK(executable->Start(arguments, {})); });
    EXPECT_EQ(executable->started_count(), 2);
    for (const char *function :
         {"cuEventQuery", "cuStreamSynchronize", "cuMemCreate",
          "cuMemHostAlloc", "cuMemFreeHost", "cuEventCreate",
          "cuEventDestroy_v2", "cuStreamCreateWithPriority"}) {
      EXPECT_EQ(calls[function], 0) << function;
    }
    EXPECT_EQ(machine_.pageable_copy_count(), pageable_copies);
    // Copies of both arguments and the loss.
    EXPECT_EQ(calls["cuMemcpyAsync"], has_graphs() ? 0 : 3);
    calls = CallsOf([&] { EXPECT_OK(executable->Finish(&results)); });
    EXPECT_EQ(calls["cuMemcpyAsync"], 0);
    EXPECT_EQ(calls["cuLaunchKernelEx"], 0);
    ASSERT_OK(executable->Finish(&results));
  }
}

TEST_P(DeviceStepTest, OverlappingStepsMatchTheHost) {
  for (const bool has_table : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const auto on_device, CompileOnDevice(has_table));
    ASSERT_OK_AND_ASSIGN(const auto on_host, CompileOnHost(has_table));
    std::vector<Tensor> results;
    std::vector<Tensor> wanted;
    for (int i = 0; i < 10; ++i) {
      std::vector<Tensor> arguments = Batch(has_table);
      // Start() has copied the arguments, so changing them has no effect.
      arguments[1].mutable_flat<int64_t>()[0] = i % kClasses;
      ASSERT_OK(on_device->Start(arguments, {}));
      arguments[1].mutable_flat<int64_t>()[0] = -1;
      if (i == 0) continue;
      ASSERT_OK(on_device->Finish(&results));
      arguments[1].mutable_flat<int64_t>()[0] = (i - 1) % kClasses;
      ASSERT_OK(on_host->Run(arguments, {}, &wanted));
      EXPECT_NEAR(results[0].scalar<float>(), wanted[0].scalar<float>(), 1e-5);
    }
    ASSERT_OK(on_device->Finish(&results));
    std::vector<Tensor> last = Batch(has_table);
    last[1].mutable_flat<int64_t>()[0] = 9 % kClasses;
    ASSERT_OK(on_host->Run(last, {}, &wanted));
    ExpectSameVariables(1e-5);
  }
}

// The upload runs while the previous step computes. Each step has other data.
TEST_P(DeviceStepTest, LargeArgumentsAreCopiedBesideTheStepBefore) {
  ASSERT_OK_AND_ASSIGN(const auto on_device,
                       CompileOnDevice(false, kManyColumns));
  ASSERT_OK_AND_ASSIGN(const auto on_host, CompileOnHost(false, kManyColumns));
  const auto batch = [](int step) {
    std::vector<Tensor> arguments = Batch(false, kManyColumns);
    for (float &element : arguments[0].mutable_flat<float>()) {
      element *= static_cast<float>(1 + step);
    }
    return arguments;
  };
  constexpr int kSteps = 6;
  std::vector<Tensor> results;
  std::vector<Tensor> wanted;
  std::map<std::string, int64_t> calls;
  for (int step = 0; step <= kSteps; ++step) {
    if (step < kSteps) {
      calls = CallsOf([&] { ASSERT_OK(on_device->Start(batch(step), {})); });
    }
    if (step == 0) continue;
    ASSERT_OK(on_device->Finish(&results));
    ASSERT_OK(on_host->Run(batch(step - 1), {}, &wanted));
    EXPECT_NEAR(results[0].scalar<float>(), wanted[0].scalar<float>(), 1e-4);
  }
  ExpectSameVariables(1e-4);
  // The upload; without graphs also its copy in the step, the labels, the loss.
  EXPECT_EQ(calls["cuMemcpyAsync"], has_graphs() ? 1 : 4);
  EXPECT_EQ(calls["cuStreamWaitEvent"], 1);
  EXPECT_EQ(calls["cuMemCreate"], 0);
}

TEST_P(DeviceStepTest, AStepThatCannotBeginReleasesItsArguments) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       CompileOnDevice(false, kManyColumns));
  ASSERT_OK(executable->MeasureIdleTime());
  std::vector<Tensor> arguments = Batch(false, kManyColumns);
  ASSERT_OK_AND_ASSIGN(auto buffer, device_->pinned_memory().Allocate(
                                        arguments[0].size_bytes()));
  Tensor pinned(DType::kFloat32, arguments[0].shape(), std::move(buffer));
  arguments[0] = pinned;
  // The first event is that of the upload, the second one begins the timing of
  // the step.
  machine_.Fail("cuEventRecord", driver::kInvalidValue, /*after=*/1);
  EXPECT_FALSE(executable->Start(arguments, {}).ok());
  EXPECT_EQ(executable->started_count(), 0);
  arguments.clear();
  EXPECT_TRUE(pinned.IsSoleOwner());
}

TEST_P(DeviceStepTest, AnErrorCancelsLaterStartedSteps) {
  ASSERT_OK_AND_ASSIGN(const auto on_device, CompileOnDevice(true));
  ASSERT_OK_AND_ASSIGN(const auto on_host, CompileOnHost(true));
  std::vector<Tensor> results;
  std::vector<Tensor> wrong = Batch(true);
  wrong[0].mutable_flat<int64_t>()[5] = kWords;
  const absl::Status expected = on_host->Run(wrong, {}, &results);
  ASSERT_FALSE(expected.ok());
  for (int good_steps = 0; good_steps < 3; ++good_steps) {
    for (int i = 0; i < good_steps; ++i) {
      ASSERT_OK(on_host->Run(Batch(true), {}, &results));
      ASSERT_OK(on_device->Start(Batch(true), {}));
      if (i > 0) {
        ASSERT_OK(on_device->Finish(&results));
      }
    }
    ASSERT_OK(on_device->Start(wrong, {}));
    if (good_steps > 0) {
      ASSERT_OK(on_device->Finish(&results));
    }
    // This step begins before the host has seen the failure of the previous
    // one.
    ASSERT_OK(on_device->Start(Batch(true), {}));
    EXPECT_EQ(on_device->Finish(&results), expected);
    EXPECT_EQ(on_device->started_count(), 0);
    ExpectSameVariables(1e-5);
    EXPECT_EQ(on_device_->UpdateCount("w").value(),
              on_host_.UpdateCount("w").value());
  }
}

TEST_P(DeviceStepTest, AnInvalidWeightChangesNothing) {
  const VariableHandle &w = Variables()[1];
  GraphBuilder builder(&BuiltinOps(), "weighted");
  const Value weights = builder.Parameter("weights", {DType::kFloat32, {3}});
  SetLossDenominator(Sum(weights));
  const Value loss = Mean(Square(ReadVariable(builder, w)));
  ApplyGradient(w, VariableGradients(loss, {w.name})[0].dense);
  builder.AddResult(loss);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const auto on_device,
      Executable::Compile(
          graph, BuiltinOps(), kernels_, on_device_.get(),
          {.device = device_.get(), .host_kernels = &CpuKernels()}));
  ASSERT_OK_AND_ASSIGN(
      const auto on_host,
      Executable::Compile(graph, BuiltinOps(), CpuKernels(), &on_host_));
  std::vector<Tensor> results;
  for (const float last : {1.0f, NAN, -5.0f, INFINITY, 2.0f}) {
    const std::vector<Tensor> arguments = {
        Tensor::FromValues<float>({3}, {1, 2, last})};
    const absl::Status expected = on_host->Run(arguments, {}, &results);
    EXPECT_EQ(on_device->Run(arguments, {}, &results), expected);
    EXPECT_EQ(expected.ok(), last > 0 && std::isfinite(last));
    ExpectSameVariables(1e-5);
  }
}

TEST_P(DeviceStepTest, ALostGpuIsThatOfStepsWithoutGraphs) {
  ASSERT_OK_AND_ASSIGN(const auto executable, CompileOnDevice(false));
  const std::vector<Tensor> arguments = Batch(false);
  std::vector<Tensor> results;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(executable->Run(arguments, {}, &results));
  }
  machine_.Fail(has_graphs() ? "cuGraphLaunch" : "cuLaunchKernelEx",
                driver::kEccUncorrectable, 0, /*is_sticky=*/true);
  const absl::Status status = executable->Run(arguments, {}, &results);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      status.message(),
      ::testing::HasSubstr("begin_step failed: CUDA_ERROR_ECC_UNCORRECTABLE"));
  EXPECT_TRUE(status.GetPayload(kDeviceLostUrl).has_value());
}

}  // namespace
}  // namespace muster
