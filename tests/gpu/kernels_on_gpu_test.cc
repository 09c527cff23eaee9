// Compares every GPU kernel with the reference kernels, in the way steps run
// them: operands are copied to the device, and the executor makes the plan.
// With MUSTER_TEST_GPU=real, uses the GPU of the machine.

#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/conformance/attention_cases.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/cuda/cuda_libraries.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/compute/runtime/attention_fusion.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

class OneGpu : public ::testing::Environment {
 public:
  void SetUp() override { ASSERT_OK(UseGpusUnderTest(1)); }
};
const auto* const kGpu = ::testing::AddGlobalTestEnvironment(new OneGpu);

// Returns the results of the op on the device. The seed and the offset are
// those of RunKernel().
absl::StatusOr<std::vector<Tensor>> RunOnDevice(
    const OpCase& one, const std::vector<Tensor>& inputs, Device* device) {
  GraphBuilder builder(&BuiltinOps(), "one_op");
  std::vector<Value> parameters;
  for (const Tensor& input : inputs) {
    parameters.push_back(builder.Parameter(
        absl::StrCat("input", parameters.size()), input.type()));
  }
  for (const Value& output :
       builder.OpWithOutputs(one.op, parameters, one.attributes)) {
    builder.AddResult(output);
  }
  ASSIGN_OR_RETURN(Graph graph, std::move(builder).Build());
  const KernelRegistry kernels = CudaKernels(device);
  ASSIGN_OR_RETURN(const auto executable,
                   Executable::Compile(std::move(graph), BuiltinOps(), kernels,
                                       /*variables=*/nullptr,
                                       {.device = device,
                                        .host_kernels = &CpuKernels(),
                                        .soft_placement = false}));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(
      executable->Run(inputs, {.step_seed = 5, .example_offset = 3}, &results));
  return results;
}

void ExpectConformsOnDevice(const OpCase& one, Device* device) {
  SCOPED_TRACE(Describe(one));
  RandomStream random(FoldIn(11, Describe(one)));
  std::vector<Tensor> inputs;
  for (const OpInput& input : one.inputs) {
    inputs.push_back(RandomTensor(input, &random));
  }
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                       SpecOf(one.op, one.attributes, inputs));
  ASSERT_OK_AND_ASSIGN(const auto reference,
                       ReferenceKernels().Create(spec, 1));
  const std::vector<Tensor> wanted = RunKernel(reference.get(), spec, inputs);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       RunOnDevice(one, inputs, device));
  ASSERT_EQ(got.size(), wanted.size());
  // Random numbers are drawn in float32, regardless of the dtype of the result.
  const bool is_drawn =
      BuiltinOps().FindOrPlain(one.op).reads == OpReads::kBatchRows;
  for (size_t i = 0; i < wanted.size(); ++i) {
    ExpectClose(got[i], wanted[i],
                is_drawn ? DType::kFloat32 : wanted[i].dtype());
  }
}

TEST(KernelsOnGpuTest, EachCaseConformsToTheReference) {
  ASSERT_OK_AND_ASSIGN(Device* const device,
                       DeviceSet::OfProcess().FindDevice(0));
  SCOPED_TRACE(device->description().ToString());
  std::set<std::string> with_kernel;
  for (const std::string& op : CudaKernels(device).ops()) {
    with_kernel.insert(op);
  }
  int case_count = 0;
  for (const OpCase& one : AllKernelCases()) {
    if (!with_kernel.contains(one.op)) continue;
    ExpectConformsOnDevice(one, device);
    ++case_count;
  }
  RecordProperty("cases", case_count);
  RecordProperty("device", device->description().ToString());
  std::cout << "libraries: " << FindCudaLibraries(*device).ToString()
            << std::endl;
  EXPECT_GT(case_count, 0);
}

// Returns the results of batch normalization with an activation, and of its
// gradients. If `keeps_normalized`, the value between them is also a result,
// which prevents their fusion.
absl::StatusOr<std::vector<Tensor>> TrainBatchNorm(
    const std::vector<Tensor>& inputs, bool is_relu6, bool keeps_normalized,
    Device* device) {
  GraphBuilder builder(&BuiltinOps(), "batch_norm");
  const Value x = builder.Parameter("x", inputs[0].type());
  const Value scale = builder.Parameter("scale", inputs[1].type());
  const Value offset = builder.Parameter("offset", inputs[2].type());
  const Value weights = builder.Parameter("weights", inputs[3].type());
  const BatchNormOutputs normalized = BatchNormTraining(x, scale, offset);
  const Value y = is_relu6 ? Relu6(normalized.y) : Relu(normalized.y);
  builder.AddResult(y);
  builder.AddResult(normalized.mean);
  builder.AddResult(normalized.variance);
  const std::vector<Value> sources = {x, scale, offset};
  const std::vector<Gradient> gradients = Gradients(Sum(y * weights), sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    builder.AddResult(DenseGradient(gradients[i], sources[i]));
  }
  if (keeps_normalized) builder.AddResult(normalized.y);
  ASSIGN_OR_RETURN(Graph graph, std::move(builder).Build());
  const KernelRegistry kernels = CudaKernels(device);
  ASSIGN_OR_RETURN(const auto executable,
                   Executable::Compile(std::move(graph), BuiltinOps(), kernels,
                                       /*variables=*/nullptr,
                                       {.device = device,
                                        .host_kernels = &CpuKernels(),
                                        .soft_placement = false}));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(executable->Run(inputs, {}, &results));
  return results;
}

TEST(KernelsOnGpuTest, ActivationsAfterBatchNormalizationAreFused) {
  ASSERT_OK_AND_ASSIGN(Device* const device,
                       DeviceSet::OfProcess().FindDevice(0));
  RandomStream random(7);
  for (const DType dtype :
       {DType::kFloat32, DType::kBfloat16, DType::kFloat64}) {
    const DType channels = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    for (const Shape& shape : {Shape({3, 50, 8}), Shape({40, 5})}) {
      const Shape of_channels = {shape.dim(shape.rank() - 1)};
      // Some values are above 6 after normalization.
      const std::vector<Tensor> inputs = {
          RandomTensor({dtype, shape, -3, 5}, &random),
          RandomTensor({channels, of_channels, 3, 8}, &random),
          RandomTensor({channels, of_channels, -1, 1}, &random),
          RandomTensor({dtype, shape, -1, 1}, &random)};
      for (const bool is_relu6 : {false, true}) {
        SCOPED_TRACE(absl::StrCat(DTypeString(dtype), shape.ToString(),
                                  is_relu6 ? " relu6" : " relu"));
        ASSERT_OK_AND_ASSIGN(const auto fused,
                             TrainBatchNorm(inputs, is_relu6, false, device));
        ASSERT_OK_AND_ASSIGN(const auto apart,
                             TrainBatchNorm(inputs, is_relu6, true, device));
        for (size_t i = 0; i < fused.size(); ++i) {
          ExpectClose(fused[i], apart[i], DType::kFloat32);
        }
      }
    }
  }
}

// The results of attention on the device, and whether it ran as one op.
struct AttentionOnDevice {
  std::vector<Tensor> results;
  bool is_fused = false;
};

absl::StatusOr<AttentionOnDevice> RunAttention(const AttentionCase& one,
                                               const AttentionTracing& tracing,
                                               Device* device) {
  ASSIGN_OR_RETURN(Graph graph, TraceAttention(one, tracing));
  const KernelRegistry kernels = CudaKernels(device);
  const std::vector<Tensor> inputs = AttentionInputs(one);
  Graph typed = graph;
  AttentionOnDevice run;
  FuseAttention(&typed, BuiltinOps(), [&](const KernelSpec& spec) {
    run.is_fused = kernels.Create(spec, 1).ok();
    return run.is_fused;
  });
  ASSIGN_OR_RETURN(const auto executable,
                   Executable::Compile(std::move(graph), BuiltinOps(), kernels,
                                       /*variables=*/nullptr,
                                       {.device = device,
                                        .host_kernels = &CpuKernels(),
                                        .soft_placement = false}));
  RETURN_IF_ERROR(executable->Run(inputs, {}, &run.results));
  std::vector<Tensor> again;
  RETURN_IF_ERROR(executable->Run(inputs, {}, &again));
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(std::memcmp(again[i].raw_data(), run.results[i].raw_data(),
                          again[i].size_bytes()),
              0)
        << "the bits of result " << i << " differ from run to run";
  }
  return run;
}

TEST(KernelsOnGpuTest, AttentionAndItsGradientConform) {
  ASSERT_OK_AND_ASSIGN(Device* const device,
                       DeviceSet::OfProcess().FindDevice(0));
  int fused_count = 0;
  for (const AttentionCase& one : AttentionCases()) {
    SCOPED_TRACE(Describe(one));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                         WantedAttention(one));
    for (const bool has_gradients : {false, true}) {
      ASSERT_OK_AND_ASSIGN(
          const AttentionOnDevice run,
          RunAttention(one, {.has_gradients = has_gradients}, device));
      ExpectAttentionClose(one, run.results, wanted);
      if (run.is_fused) ++fused_count;
      std::cout << Describe(one) << (has_gradients ? " with gradients" : "")
                << (run.is_fused ? ": fused" : ": not fused") << std::endl;
    }
  }
  RecordProperty("fused", fused_count);
  const DeviceDescription& description = device->description();
  if (description.compute_capability == 90 &&
      FindCudaLibraries(*device).cudnn != nullptr) {
    EXPECT_GT(fused_count, 0);
  }
}

// Tensors are so large that each thread processes several elements. Some
// lengths are multiples of the group size, others are not.
TEST(KernelsOnGpuTest, LargeTensorsConformToTheReference) {
  ASSERT_OK_AND_ASSIGN(Device* const device,
                       DeviceSet::OfProcess().FindDevice(0));
  const auto matrices = [](DType dtype, int64_t columns) {
    const int64_t rows = (1 << 17) / columns + 3;
    const OpInput x = {dtype, {rows, columns}};
    const OpInput row = {dtype, {columns}};
    return std::vector<OpCase>{
        {"Add", {}, {x, row}},
        {"Mul", {}, {x, {dtype, {rows, 1}}}},
        {"Maximum", {}, {x, {dtype, {}}}},
        {"Select", {}, {{DType::kBool, {rows, columns}}, x, row}},
        {"Cast", {{"dtype", DType::kBfloat16}}, {x}},
        {"Transpose", {{"permutation", std::vector<int64_t>{1, 0}}}, {x}},
        {"Concat", {{"axis", int64_t{1}}}, {x, {dtype, {rows, 3}}}}};
  };
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt64}) {
    for (const int64_t columns : {7, 64, 1001}) {
      for (const OpCase& one : matrices(dtype, columns)) {
        ExpectConformsOnDevice(one, device);
      }
    }
  }
}

}  // namespace
}  // namespace muster
