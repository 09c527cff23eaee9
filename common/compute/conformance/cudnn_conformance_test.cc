// Compares the kernels that call cuDNN with the reference kernels, on a
// simulated GPU with a fake of the library, which rejects calls whose behavior
// the library leaves undefined.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/compute/conformance/case_types.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/conformance/library_fixture.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_cudnn.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device_context.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class CudnnConformanceTest : public LibraryTest {
 protected:
  KernelRegistry MakeKernels() {
    return CudaKernels(device_.get(), {.cudnn = &cudnn_.api()});
  }

  int64_t ExecutionCount() { return cudnn_.counts()["cudnnBackendExecute"]; }

  FakeCudnn cudnn_;
};

// True for depthwise convolutions that Muster's own kernels compute.
bool HasOwnKernel(const KernelSpec& spec) {
  if (!absl::StartsWith(spec.op, "DepthwiseConv2D") ||
      spec.outputs[0].dtype == DType::kFloat64) {
    return false;
  }
  const bool is_gradient = absl::EndsWith(spec.op, "BackpropKernel");
  const Shape& kernel =
      is_gradient ? spec.outputs[0].shape : spec.inputs[1].shape;
  const std::vector<int64_t> none = {1, 1};
  return kernel.dim(3) == 1 && spec.attributes.GetOr("dilations", none) == none;
}

TEST_F(CudnnConformanceTest, ConvolutionsMatchTheReference) {
  int64_t depthwise_count = 0;  // Computed by the library.

  {
    const KernelRegistry kernels = MakeKernels();
    for (const OpCase& c : AllKernelCases()) {
      if (!absl::StrContains(c.op, "Conv2D")) continue;
      SCOPED_TRACE(Describe(c));
      const std::vector<Tensor> inputs = RandomInputs(c);
      ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                           SpecOf(c.op, c.attributes, inputs));
      const int64_t count_before = ExecutionCount();
      ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
      ExpectClose(RunOnDevice(kernel.get(), spec, inputs),
                  Reference(spec, inputs));
      const int64_t wanted = IsForLibrary(spec) && !HasOwnKernel(spec) ? 1 : 0;
      EXPECT_EQ(ExecutionCount() - count_before, wanted);
      if (absl::StartsWith(c.op, "Depthwise")) depthwise_count += wanted;
    }
  }
  EXPECT_GT(depthwise_count, 0);
  // Only permitted engines were used, and all descriptors are destroyed.
  EXPECT_THAT(cudnn_.engine_counts(),
              ElementsAre(Pair(FakeEngine::kTensorCore, ::testing::Gt(0)),
                          Pair(FakeEngine::kPlain, ::testing::Gt(0))));
  EXPECT_EQ(cudnn_.descriptor_count(), 0);
}

KernelSpec SmallConvolution(DType dtype, const std::string& padding = "VALID") {
  return {"Conv2D",
          {{"padding", padding}, {"strides", std::vector<int64_t>{2, 2}}},
          {{dtype, {1, 4, 4, 8}}, {dtype, {3, 3, 8, 8}}},
          {{dtype,
            {1, padding == "VALID" ? 1 : 2, padding == "VALID" ? 1 : 2, 8}}}};
}

std::vector<Tensor> SmallInputs() {
  // The sum of each window is 2^-20, or 0 if its operands are rounded.
  Tensor x = Tensor::Full(kF32, {1, 4, 4, 8}, 0);
  x.mutable_flat<float>()[0] = 1 + std::ldexp(1.0f, -20);
  x.mutable_flat<float>()[1] = -1;
  return {x, Tensor::Full(kF32, {3, 3, 8, 8}, 1)};
}

TEST_F(CudnnConformanceTest, Float32IsRoundedToTensorFloat32OnlyIfEnabled) {
  const KernelSpec spec = SmallConvolution(kF32);
  const auto first_result = [&] {
    const KernelRegistry kernels = MakeKernels();
    const auto kernel = kernels.Create(spec, 1);
    EXPECT_OK(kernel);
    return RunOnDevice(kernel->get(), spec, SmallInputs()).flat<float>()[0];
  };
  EXPECT_EQ(first_result(), std::ldexp(1.0f, -20));
  MakeDevice(/*tensor_float_32=*/true);
  EXPECT_EQ(first_result(), 0);
}

TEST_F(CudnnConformanceTest, EqualConvolutionsShareAPlan) {
  const KernelRegistry kernels = MakeKernels();
  ASSERT_OK_AND_ASSIGN(const auto first,
                       kernels.Create(SmallConvolution(kF32), 1));
  const int64_t made = cudnn_.descriptor_count();
  ASSERT_OK_AND_ASSIGN(const auto same,
                       kernels.Create(SmallConvolution(kF32), 1));
  EXPECT_EQ(cudnn_.descriptor_count(), made);
  ASSERT_OK_AND_ASSIGN(const auto other,
                       kernels.Create(SmallConvolution(kF32, "SAME"), 1));
  EXPECT_GT(cudnn_.descriptor_count(), made);
}

TEST_F(CudnnConformanceTest, UsesOwnKernelWithoutLibrarySupport) {
  const KernelRegistry kernels = MakeKernels();
  const KernelSpec spec = SmallConvolution(kF32);
  // Counts the tensors, the convolution, the operation and the graph.
  cudnn_.Fail("cudnnBackendFinalize", cudnn::kNotSupported, /*after=*/5);
  ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
  ExpectClose(RunOnDevice(kernel.get(), spec, SmallInputs()),
              Reference(spec, SmallInputs()));
  EXPECT_EQ(ExecutionCount(), 0);
}

TEST_F(CudnnConformanceTest, AGpuThatTheLibraryCannotUseHasOtherKernels) {
  cudnn_.Fail("cudnnCreate", cudnn::kNotInitialized);
  const KernelRegistry kernels = MakeKernels();
  const KernelSpec spec = SmallConvolution(kF32);
  ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
  ExpectClose(RunOnDevice(kernel.get(), spec, SmallInputs()),
              Reference(spec, SmallInputs()));
  EXPECT_EQ(ExecutionCount(), 0);
}

TEST_F(CudnnConformanceTest, OtherErrorsOfTheLibraryAreReported) {
  const KernelRegistry kernels = MakeKernels();
  cudnn_.Fail("cudnnBackendSetAttribute", cudnn::kBadParam);
  EXPECT_THAT(kernels.Create(SmallConvolution(kF32), 1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("cudnnBackendSetAttribute")));
  cudnn_.Fail("cudnnBackendCreateDescriptor", cudnn::kHostAllocationFailed);
  EXPECT_THAT(kernels.Create(SmallConvolution(kF32), 1),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

class SmallConvolutionTest : public CudnnConformanceTest {
 protected:
  SmallConvolutionTest() {
    const KernelSpec spec = SmallConvolution(kF32);
    auto kernel = kernels_.Create(spec, 1);
    EXPECT_OK(kernel);
    kernel_ = *std::move(kernel);
    scratch_ = Allocate(kernel_->scratch_bytes());
    x_ = OnDevice(spec.inputs[0]);
    kernel_tensor_ = OnDevice(spec.inputs[1]);
    y_ = OnDevice(spec.outputs[0]);
  }

  absl::Status Run(size_t scratch_offset = 0) {
    const Tensor* const inputs[] = {&x_, &kernel_tensor_};
    Tensor* const outputs[] = {&y_};
    return kernel_->Run({.inputs = inputs,
                         .outputs = outputs,
                         .scratch = {scratch_->data() + scratch_offset,
                                     kernel_->scratch_bytes()},
                         .stream = stream_.get()});
  }

  const KernelRegistry kernels_ = MakeKernels();
  std::unique_ptr<Kernel> kernel_;
  Tensor x_, kernel_tensor_, y_;
  std::shared_ptr<Buffer> scratch_;
};

TEST_F(SmallConvolutionTest, AStepTransposesTheKernelAndEnqueuesThePlan) {
  EXPECT_GT(kernel_->scratch_bytes(), 0);
  // The first step creates the descriptor of its addresses.
  EXPECT_OK(Run());
  const auto driver_before = machine_.counts();
  const auto library_before = cudnn_.counts();
  EXPECT_OK(Run());
  EXPECT_THAT(CountedSince(driver_before, machine_.counts()),
              ElementsAre(Pair("cuLaunchKernelEx", 1)));
  EXPECT_THAT(
      CountedSince(library_before, cudnn_.counts()),
      ElementsAre(Pair("cudnnBackendExecute", 1), Pair("cudnnSetStream", 1)));
  Drain();
}

TEST_F(SmallConvolutionTest, OldAddressesAreForgotten) {
  constexpr int kMoreThanAreKept = 9;
  const int64_t before = cudnn_.descriptor_count();
  std::vector<Tensor> outputs;
  for (int i = 0; i < kMoreThanAreKept; ++i) {
    outputs.push_back(y_);
    y_ = OnDevice(y_.type());
    EXPECT_OK(Run());
  }
  EXPECT_LT(cudnn_.descriptor_count() - before, kMoreThanAreKept);
  Drain();
}

TEST_F(SmallConvolutionTest, MemoryThatIsNotAlignedIsAnError) {
  EXPECT_THAT(Run(/*scratch_offset=*/8),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("not a multiple of 16 bytes")));
}

TEST_F(SmallConvolutionTest, AFailedExecutionOnALostGpuSaysThatItIsLost) {
  cudnn_.Fail("cudnnBackendExecute", cudnn::kExecutionFailed);
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInternal));
  machine_.Fail("cuMemGetInfo_v2", driver::kEccUncorrectable);
  cudnn_.Fail("cudnnBackendExecute", cudnn::kExecutionFailed);
  const absl::Status status = Run();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(status.GetPayload(kDeviceLostUrl).has_value());
}

}  // namespace
}  // namespace muster
