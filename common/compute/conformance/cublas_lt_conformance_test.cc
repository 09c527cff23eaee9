// Compares the kernels that call cuBLASLt with the reference kernels, on a
// simulated GPU with a fake of the library, which rejects calls whose behavior
// the library leaves undefined.

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/conformance/case_types.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/conformance/library_fixture.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"
#include "common/compute/kernels/cuda/cublas_lt/fake/fake_cublas_lt.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/base/random.h"
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

using cublas_lt::Epilogue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr DType kF16 = DType::kFloat16;
constexpr DType kBF16 = DType::kBfloat16;
constexpr DType kF64 = DType::kFloat64;

class CublasLtConformanceTest : public LibraryTest {
 protected:
  KernelRegistry MakeKernels() {
    return CudaKernels(device_.get(), {.cublas_lt = &cublas_lt_.api()});
  }

  int64_t ProductCount() { return cublas_lt_.counts()["cublasLtMatmul"]; }

  FakeCublasLt cublas_lt_;
};

TEST_F(CublasLtConformanceTest, ProductsMatchTheReference) {
  const KernelRegistry kernels = MakeKernels();
  int refused_count = 0;
  for (const OpCase& c : AllKernelCases()) {
    if (c.op != "MatMul") continue;
    SCOPED_TRACE(Describe(c));
    const std::vector<Tensor> inputs = RandomInputs(c);
    ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                         SpecOf(c.op, c.attributes, inputs));
    const int64_t count_before = ProductCount();
    ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
    ExpectClose(RunOnDevice(kernel.get(), spec, inputs),
                Reference(spec, inputs));
    const int64_t count = ProductCount() - count_before;
    EXPECT_LE(count, IsForLibrary(spec) ? 1 : 0);
    if (IsForLibrary(spec) && count == 0) ++refused_count;
  }
  // Both operands are broadcast, along different axes, which no strides can
  // express. There is one such case for each choice of transposes.
  EXPECT_EQ(refused_count, 4);
}

// True if each window is a separate single pixel.
bool HasSinglePixels(const OpCase& c) {
  const auto strides =
      c.attributes.GetOr("strides", std::vector<int64_t>{1, 1});
  const int kernel = c.op == "Conv2DBackpropKernel" ? 2 : 1;
  const Shape& extents = c.inputs[kernel].shape;
  return extents.dim(0) == 1 && extents.dim(1) == 1 && strides[0] == 1 &&
         strides[1] == 1 && c.attributes.GetOr("groups", int64_t{1}) == 1;
}

TEST_F(CublasLtConformanceTest, ConvolutionsOfSinglePixelsAreProducts) {
  const KernelRegistry kernels = MakeKernels();
  int product_count = 0;
  for (const OpCase& c : AllKernelCases()) {
    if (!absl::StartsWith(c.op, "Conv2D")) continue;
    SCOPED_TRACE(Describe(c));
    const std::vector<Tensor> inputs = RandomInputs(c);
    ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                         SpecOf(c.op, c.attributes, inputs));
    const bool is_product = HasSinglePixels(c) && IsForLibrary(spec);
    const int64_t count_before = ProductCount();
    ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
    ExpectClose(RunOnDevice(kernel.get(), spec, inputs),
                Reference(spec, inputs));
    EXPECT_EQ(ProductCount() - count_before, is_product ? 1 : 0);
    product_count += is_product ? 1 : 0;
  }
  EXPECT_GT(product_count, 0);
}

// Returns operands for a product of `x` and a [40, 70] matrix, and a bias.
std::vector<Tensor> FusedInputs(DType dtype, const Shape& x,
                                const Shape& bias = {70}) {
  RandomStream random(3);
  return {RandomTensor({dtype, x, -1, 1}, &random),
          RandomTensor({dtype, {40, 70}, -1, 1}, &random),
          RandomTensor({dtype, bias, -1, 1}, &random)};
}

KernelSpec FusedSpec(const std::string& activation,
                     const std::vector<Tensor>& inputs) {
  Shape y = inputs[0].shape();
  y.set_dim(y.rank() - 1, inputs[1].shape().dim(1));
  return {"FusedMatMulBias",
          {{"activation", activation}},
          {inputs[0].type(), inputs[1].type(), inputs[2].type()},
          {{inputs[0].dtype(), y}}};
}

// Computes the fused op from its parts.
Tensor FusedReference(const KernelSpec& spec, const std::vector<Tensor>& in) {
  const TensorType& type = spec.outputs[0];
  const Tensor product = Reference(
      {"MatMul", {}, {in[0].type(), in[1].type()}, {type}}, {in[0], in[1]});
  const Tensor sum =
      Reference({"Add", {}, {type, in[2].type()}, {type}}, {product, in[2]});
  const auto activation = spec.attributes.GetOr<std::string>("activation", "");
  if (activation.empty()) return sum;
  const bool is_approximate = activation == "GeluTanh";
  return Reference({is_approximate ? "Gelu" : activation,
                    {{"approximate", is_approximate}},
                    {type},
                    {type}},
                   {sum});
}

const std::map<std::string, Epilogue>& EpiloguesOfActivations() {
  static const auto* const kEpilogues =
      new std::map<std::string, Epilogue>{{"", Epilogue::kBias},
                                          {"Relu", Epilogue::kReluBias},
                                          {"GeluTanh", Epilogue::kGeluBias},
                                          // A kernel applies these in place.
                                          {"Relu6", Epilogue::kBias},
                                          {"Tanh", Epilogue::kBias},
                                          {"Sigmoid", Epilogue::kBias},
                                          {"Gelu", Epilogue::kBias}};
  return *kEpilogues;
}

TEST_F(CublasLtConformanceTest, FusedProductsUseEpilogues) {
  const KernelRegistry kernels = MakeKernels();
  for (const auto& [activation, epilogue] : EpiloguesOfActivations()) {
    for (const DType dtype : {kF32, kF16, kBF16, kF64}) {
      for (const auto& inputs :
           {FusedInputs(dtype, {33, 40}), FusedInputs(dtype, {3, 5, 40}),
            FusedInputs(dtype, {33, 40}, {1, 70})}) {
        const KernelSpec spec = FusedSpec(activation, inputs);
        SCOPED_TRACE(
            absl::StrCat(activation, " of ", spec.outputs[0].ToString()));
        const int64_t before = cublas_lt_.epilogue_counts()[epilogue];
        ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
        ExpectClose(RunOnDevice(kernel.get(), spec, inputs),
                    FusedReference(spec, inputs));
        EXPECT_EQ(cublas_lt_.epilogue_counts()[epilogue], before + 1);
      }
    }
  }
}

TEST_F(CublasLtConformanceTest, WithoutEpiloguesTheProductIsStillTheLibrarys) {
  cublas_lt_.RefuseEpilogues();
  const KernelRegistry kernels = MakeKernels();
  const std::vector<Tensor> inputs = FusedInputs(kF32, {33, 40});
  for (const auto& [activation, epilogue] : EpiloguesOfActivations()) {
    SCOPED_TRACE(activation);
    const KernelSpec spec = FusedSpec(activation, inputs);
    ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
    ExpectClose(RunOnDevice(kernel.get(), spec, inputs),
                FusedReference(spec, inputs));
  }
  EXPECT_EQ(cublas_lt_.epilogue_counts()[Epilogue::kDefault],
            EpiloguesOfActivations().size());
}

KernelSpec SmallProduct(DType dtype) {
  return {
      "MatMul", {}, {{dtype, {8, 16}}, {dtype, {16, 4}}}, {{dtype, {8, 4}}}};
}

// Returns a left operand whose product with ones is (1 + 2^-bits) - 1. The
// product is zero if the library rounds operands to fewer than `bits` mantissa
// bits.
Tensor ProductWithLowBit(int bits) {
  Tensor a = Tensor::Full(kF32, {8, 16}, 0);
  for (int64_t row = 0; row < 8; ++row) {
    a.mutable_flat<float>()[row * 16] = 1 + std::ldexp(1.0f, -bits);
    a.mutable_flat<float>()[row * 16 + 1] = -1;
  }
  return a;
}

TEST_F(CublasLtConformanceTest, Float32IsRoundedToTensorFloat32OnlyIfEnabled) {
  const KernelSpec spec = SmallProduct(kF32);
  const std::vector<Tensor> inputs = {ProductWithLowBit(20),
                                      Tensor::Full(kF32, {16, 4}, 1)};
  const auto first_result = [&] {
    const KernelRegistry kernels = MakeKernels();
    const auto kernel = kernels.Create(spec, 1);
    EXPECT_OK(kernel);
    return RunOnDevice(kernel->get(), spec, inputs).flat<float>()[0];
  };
  EXPECT_EQ(first_result(), std::ldexp(1.0f, -20));
  MakeDevice(/*tensor_float_32=*/true);
  EXPECT_EQ(first_result(), 0);
}

TEST_F(CublasLtConformanceTest, UsesOwnKernelWithoutLibrarySupport) {
  const KernelRegistry kernels = MakeKernels();
  const KernelSpec spec = SmallProduct(kF32);
  cublas_lt_.Fail("cublasLtMatmulAlgoGetHeuristic", cublas_lt::kNotSupported);
  ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
  const std::vector<Tensor> inputs = {ProductWithLowBit(3),
                                      Tensor::Full(kF32, {16, 4}, 1)};
  ExpectClose(RunOnDevice(kernel.get(), spec, inputs), Reference(spec, inputs));
  EXPECT_EQ(ProductCount(), 0);
}

TEST_F(CublasLtConformanceTest, AGpuThatTheLibraryCannotUseHasOtherKernels) {
  cublas_lt_.Fail("cublasLtCreate", cublas_lt::kNotInitialized);
  const KernelRegistry kernels = MakeKernels();
  const KernelSpec spec = SmallProduct(kF32);
  ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
  const std::vector<Tensor> inputs = {ProductWithLowBit(3),
                                      Tensor::Full(kF32, {16, 4}, 1)};
  ExpectClose(RunOnDevice(kernel.get(), spec, inputs), Reference(spec, inputs));
  EXPECT_EQ(ProductCount(), 0);
}

TEST_F(CublasLtConformanceTest, OtherErrorsOfTheLibraryAreReported) {
  const KernelRegistry kernels = MakeKernels();
  cublas_lt_.Fail("cublasLtMatrixLayoutCreate", cublas_lt::kInvalidValue);
  EXPECT_THAT(kernels.Create(SmallProduct(kF32), 1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("cublasLtMatrixLayoutCreate")));
  cublas_lt_.Fail("cublasLtMatmulAlgoGetHeuristic", cublas_lt::kAllocFailed);
  EXPECT_THAT(kernels.Create(SmallProduct(kF32), 1),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

class SmallProductTest : public CublasLtConformanceTest {
 protected:
  SmallProductTest() {
    auto kernel = kernels_.Create(SmallProduct(kF32), 1);
    EXPECT_OK(kernel);
    kernel_ = *std::move(kernel);
    scratch_ = Allocate(kernel_->scratch_bytes());
  }

  absl::Status Run(size_t scratch_offset = 0) {
    const Tensor* const inputs[] = {&a_, &b_};
    Tensor* const outputs[] = {&y_};
    return kernel_->Run({.inputs = inputs,
                         .outputs = outputs,
                         .scratch = {scratch_->data() + scratch_offset,
                                     kernel_->scratch_bytes()},
                         .stream = stream_.get()});
  }

  const KernelRegistry kernels_ = MakeKernels();
  std::unique_ptr<Kernel> kernel_;
  const Tensor a_ = OnDevice(TensorType{kF32, {8, 16}});
  const Tensor b_ = OnDevice(TensorType{kF32, {16, 4}});
  Tensor y_ = OnDevice(TensorType{kF32, {8, 4}});
  std::shared_ptr<Buffer> scratch_;
};

TEST_F(SmallProductTest, AStepEnqueuesTheProductAndDoesNothingElse) {
  EXPECT_GT(kernel_->scratch_bytes(), 0);
  const auto driver_before = machine_.counts();
  const auto library_before = cublas_lt_.counts();
  EXPECT_OK(Run());
  EXPECT_THAT(CountedSince(driver_before, machine_.counts()), IsEmpty());
  EXPECT_THAT(CountedSince(library_before, cublas_lt_.counts()),
              ElementsAre(Pair("cublasLtMatmul", 1)));
  Drain();
}

TEST_F(SmallProductTest, MemoryThatIsNotAlignedIsAnError) {
  EXPECT_THAT(Run(/*scratch_offset=*/8),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("not a multiple of 16 bytes")));
}

TEST_F(SmallProductTest, AFailedExecutionOnALostGpuSaysThatItIsLost) {
  cublas_lt_.Fail("cublasLtMatmul", cublas_lt::kExecutionFailed);
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInternal));
  machine_.Fail("cuMemGetInfo_v2", driver::kEccUncorrectable);
  cublas_lt_.Fail("cublasLtMatmul", cublas_lt::kExecutionFailed);
  const absl::Status status = Run();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(status.GetPayload(kDeviceLostUrl).has_value());
}

}  // namespace
}  // namespace muster
