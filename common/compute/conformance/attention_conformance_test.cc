// Compares attention by cuDNN with the products and the softmax of the host, as
// steps run it: on a simulated GPU with a fake of the library, which rejects
// calls whose behavior the library leaves undefined.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/conformance/attention_cases.h"
#include "common/compute/conformance/library_fixture.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/attention.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_cudnn.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class AttentionConformanceTest : public LibraryTest {
 protected:
  KernelRegistry MakeKernels() {
    return CudaKernels(device_.get(), {.cudnn = &cudnn_.api()});
  }

  absl::StatusOr<std::vector<Tensor>> Run(const AttentionCase& one,
                                          const AttentionTracing& tracing) {
    const KernelRegistry kernels = MakeKernels();
    ASSIGN_OR_RETURN(Graph graph, TraceAttention(one, tracing));
    ASSIGN_OR_RETURN(const auto executable,
                     Executable::Compile(std::move(graph), BuiltinOps(),
                                         kernels, /*variables=*/nullptr,
                                         {.device = device_.get(),
                                          .host_kernels = &CpuKernels(),
                                          .soft_placement = false}));
    std::vector<Tensor> results;
    RETURN_IF_ERROR(executable->Run(AttentionInputs(one), {}, &results));
    return results;
  }

  int64_t ExecutionCount() { return cudnn_.counts()["cudnnBackendExecute"]; }

  FakeCudnn cudnn_;
};

TEST_F(AttentionConformanceTest, AttentionAndItsGradientMatchTheHost) {
  for (const AttentionCase& one : AttentionCases()) {
    SCOPED_TRACE(Describe(one));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                         WantedAttention(one));
    for (const bool has_gradients : {false, true}) {
      const int64_t before = ExecutionCount();
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                           Run(one, {.has_gradients = has_gradients}));
      EXPECT_EQ(ExecutionCount() - before, has_gradients ? 2 : 1);
      EXPECT_EQ(got.size(), has_gradients ? 4u : 1u);
      ExpectAttentionClose(one, got, wanted);
    }
  }
  EXPECT_EQ(cudnn_.descriptor_count(), 0);
}

TEST_F(AttentionConformanceTest, ProbabilitiesThatAreAResultAreComputed) {
  const AttentionCase one = AttentionCases().front();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, WantedAttention(one));
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> got,
                       Run(one, {.keeps_probabilities = true}));
  EXPECT_EQ(ExecutionCount(), 0);
  ASSERT_EQ(got.size(), 5u);
  got.pop_back();
  ExpectAttentionClose(one, got, wanted);
}

TEST_F(AttentionConformanceTest, Float32IsNotFused) {
  AttentionCase one = AttentionCases().front();
  one.dtype = DType::kFloat32;
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, WantedAttention(one));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, Run(one, {}));
  EXPECT_EQ(ExecutionCount(), 0);
  ExpectAttentionClose(one, got, wanted);
}

TEST_F(AttentionConformanceTest, UsesOwnKernelWithoutLibrarySupport) {
  const AttentionCase one = AttentionCases().front();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, WantedAttention(one));
  // Fails a tensor of the first graph.
  cudnn_.Fail("cudnnBackendFinalize", cudnn::kNotSupported, /*after=*/2);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, Run(one, {}));
  EXPECT_EQ(ExecutionCount(), 0);
  ExpectAttentionClose(one, got, wanted);
}

KernelSpec ForwardSpec(DType dtype, const Shape& k) {
  const TensorType q = {dtype, {2, 4, 3, 8}};
  return {std::string(kFusedAttentionOp),
          {{std::string(kAttentionScaleAttribute), 0.5}},
          {q, {dtype, k}, {dtype, k}},
          {q, {DType::kFloat32, {2, 3, 4}}}};
}

TEST_F(AttentionConformanceTest, TypesThatDoNotFitAreNamed) {
  const KernelRegistry kernels = MakeKernels();
  EXPECT_OK(kernels.Create(ForwardSpec(DType::kBfloat16, {2, 5, 3, 8}), 1));
  EXPECT_THAT(kernels.Create(ForwardSpec(DType::kBfloat16, {2, 5, 2, 8}), 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bfloat16[2,4,3,8], bfloat16[2,5,2,8]")));
  EXPECT_THAT(kernels.Create(ForwardSpec(DType::kFloat64, {2, 5, 3, 8}), 1),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(AttentionConformanceTest, CachesCompiledPlans) {
  const KernelSpec spec = ForwardSpec(DType::kBfloat16, {2, 5, 3, 8});
  const KernelRegistry kernels = MakeKernels();
  EXPECT_OK(kernels.Create(spec, 1));
  const int64_t made = cudnn_.counts()["cudnnBackendFinalize"];
  EXPECT_OK(kernels.Create(spec, 1));
  EXPECT_EQ(cudnn_.counts()["cudnnBackendFinalize"], made);
}

}  // namespace
}  // namespace muster
