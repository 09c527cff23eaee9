// Compares the device kernels, compiled for the host and run by the simulated
// grid, with the reference kernels.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/conformance/case_types.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Ops without a device kernel. The test below fails if an op in the list has a
// device kernel, or if an op outside of it has none. Print writes to stderr,
// ops of strings run on the host, a plugin runs programs, and the host runs the
// bodies of branches and loops, so these ops never have device kernels. The
// rest of the list must only get shorter.
const std::set<std::string>& OpsWithoutKernel() {
  static const auto* const kOps =
      new std::set<std::string>{"ImageTransform", "ImageTransformGrad",
                                "ResizeImage",    "ResizeImageGrad",
                                "LookupIndex",    "LookupCategory",
                                "HashBucket",     "Tokens",
                                "CountTokens",    "CrossHash",
                                "Print",          "Program",
                                "Cond",           "Scan",
                                "While"};
  return *kOps;
}

TEST(DeviceConformanceTest, KernelsMatchTheReferenceInAnyOrderOfThreads) {
  for (const uint64_t seed : {0, 1}) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const KernelRegistry kernels = SimulatedCudaKernels(seed);
    for (const OpCase& c : AllKernelCases()) {
      if (!OpsWithoutKernel().contains(c.op)) ExpectConforms(kernels, c);
    }
  }
}

TEST(DeviceConformanceTest, OnlyTheListedOpsHaveNoKernel) {
  std::set<std::string> without;
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (schema->has_kernel()) without.insert(schema->name);
  }
  for (const std::string& op : SimulatedCudaKernels().ops()) without.erase(op);
  EXPECT_EQ(without, OpsWithoutKernel());
}

// Returns the error of an op on the device.
absl::Status RunDeviceOp(const std::string& op, const Attributes& attributes,
                         const std::vector<Tensor>& inputs) {
  const auto spec = SpecOf(op, attributes, inputs);
  if (!spec.ok()) return spec.status();
  const auto kernel = SimulatedCudaKernels().Create(*spec, 1);
  if (!kernel.ok()) return kernel.status();
  Tensor output(spec->outputs[0].dtype, spec->outputs[0].shape);
  Tensor* const pointer = &output;
  const absl::Status status =
      (*kernel)->Run({.inputs = Pointers(inputs), .outputs = {&pointer, 1}});
  // Run() has returned the error, so the kernel does not keep it.
  EXPECT_OK((*kernel)->DataError());
  return status;
}

TEST(DeviceConformanceTest, DataErrorsHaveTheMessagesOfTheHost) {
  const auto is_invalid = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, message);
  };
  const Tensor rows = Tensor::Zeros(kF32, {3, 2});
  const Tensor indices = Tensor::FromValues<int64_t>({2}, {0, 1LL << 40});
  const Tensor labels = Tensor::FromValues<int32_t>({3}, {0, -1, 1});
  const std::string index_message =
      "index 1099511627776 at element 1 is not in [0, 3)";
  EXPECT_THAT(RunDeviceOp("Gather", {}, {rows, indices}),
              is_invalid(index_message));
  EXPECT_THAT(RunDeviceOp("ScatterRowsLike", {},
                          {Tensor::Zeros(kF32, {2, 2}), indices, rows}),
              is_invalid(index_message));
  EXPECT_THAT(RunDeviceOp("OneHot", {{"depth", int64_t{3}}, {"dtype", kF32}},
                          {indices}),
              is_invalid(index_message));
  const std::string label_message =
      "label -1 at element 1 is not in [0, 2), the range of the logits";
  EXPECT_THAT(RunDeviceOp("SparseSoftmaxCrossEntropy", {}, {rows, labels}),
              is_invalid(label_message));
  EXPECT_THAT(RunDeviceOp("SparseSoftmaxCrossEntropyGrad", {},
                          {rows, labels, Tensor::Zeros(kF32, {3})}),
              is_invalid(label_message));
  EXPECT_THAT(
      RunDeviceOp("TakeAlongRows", {},
                  {Tensor::Zeros(kF32, {1, 3}),
                   Tensor::FromValues<int64_t>({1, 2}, {0, 1LL << 40})}),
      is_invalid(index_message));
  EXPECT_THAT(RunDeviceOp("AddAlongRowsLike", {},
                          {Tensor::Zeros(kF32, {1, 2}),
                           Tensor::FromValues<int64_t>({1, 2}, {0, 1LL << 40}),
                           Tensor::Zeros(kF32, {1, 3})}),
              is_invalid(index_message));
  // The error names the first of several false elements.
  Tensor condition = Tensor::Full(DType::kBool, {600}, 1);
  EXPECT_OK(RunDeviceOp("Assert", {{"message", std::string("is wrong")}},
                        {rows, condition}));
  for (const int64_t i : {258, 301, 599}) {
    condition.mutable_flat<bool>()[i] = false;
  }
  EXPECT_THAT(RunDeviceOp("Assert", {{"message", std::string("is wrong")}},
                          {rows, condition}),
              is_invalid("is wrong (the condition is false at element 258)"));
  const Tensor ones = Tensor::FromValues<int32_t>({2}, {1, 1});
  EXPECT_THAT(
      RunDeviceOp("Div", {}, {ones, Tensor::FromValues<int32_t>({2}, {1, 0})}),
      is_invalid("integer division by zero, at element 1"));
  EXPECT_THAT(
      RunDeviceOp("Pow", {}, {ones, Tensor::FromValues<int32_t>({2}, {1, -1})}),
      is_invalid(
          "an integer to the power of a negative integer, at element 1"));
}

// NaN and infinity must be propagated, because they reveal divergence.
TEST(DeviceConformanceTest, PropagatesSpecialValues) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const KernelRegistry kernels = SimulatedCudaKernels(/*seed=*/3);
  const Tensor x = Tensor::FromValues<float>(
      {2, 4}, {kNan, kInf, -kInf, -0.0f, 1.0f, kNan, 3e38f, 1e-40f});
  const auto expect_same = [&](const std::string& op,
                               const Attributes& attributes,
                               const std::vector<Tensor>& inputs) {
    SCOPED_TRACE(op);
    ASSERT_OK_AND_ASSIGN(const KernelSpec spec, SpecOf(op, attributes, inputs));
    ASSERT_OK_AND_ASSIGN(const auto reference,
                         ReferenceKernels().Create(spec, 1));
    ASSERT_OK_AND_ASSIGN(const auto kernel, kernels.Create(spec, 1));
    ExpectClose(RunKernel(kernel.get(), spec, inputs)[0],
                RunKernel(reference.get(), spec, inputs)[0]);
  };
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (!schema->is_elementwise) continue;
    for (const OpCase& one : ElementwiseCases(*schema, kF32, {x.shape()})) {
      expect_same(one.op, one.attributes, {x});
    }
    for (const OpCase& one :
         ElementwiseCases(*schema, kF32, {x.shape(), x.shape()})) {
      expect_same(one.op, one.attributes, {x, x});
    }
  }
  for (const char* op : {"Softmax", "LogSoftmax", "Max", "Min", "Sum", "Mean",
                         "ArgMax", "ArgMin"}) {
    expect_same(op, {{"axes", std::vector<int64_t>{1}}, {"axis", int64_t{1}}},
                {x});
  }
}

TEST(DeviceConformanceTest, BatchNormIsAccurateFarFromZero) {
  const OpInput any = {kF32, {32}, -1, 1};
  ExpectConforms(SimulatedCudaKernels(/*seed=*/1),
                 {"BatchNormTraining",
                  {{"epsilon", 1e-3}},
                  {{kF32, {1300, 32}, 1000, 1001}, any, any}});
}

TEST(DeviceConformanceTest, LayerNormIsAccurateFarFromZero) {
  for (const int64_t features : {24, 200, 1540, 4116}) {
    const OpInput any = {kF32, {features}, -1, 1};
    ExpectConforms(SimulatedCudaKernels(/*seed=*/1),
                   {"LayerNorm",
                    {{"epsilon", 1e-3}},
                    {{kF32, {6, features}, 1000, 1001}, any, any}});
  }
}

// Returns a copy in memory that is not aligned for vectors.
Tensor NotAligned(const Tensor& x) {
  const size_t offset = SizeOf(x.dtype());
  const auto buffer = Buffer::Allocate(offset + x.size_bytes());
  std::copy_n(x.raw_data(), x.size_bytes(), buffer->data() + offset);
  return Tensor(x.dtype(), x.shape(), buffer, offset);
}

// A view may begin at any address, which must not change the order of sums.
void ExpectSameIfNotAligned(const std::string& op, const Attributes& attributes,
                            std::vector<Tensor> operands, int moved_operand) {
  SCOPED_TRACE(op);
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, SpecOf(op, attributes, operands));
  ASSERT_OK_AND_ASSIGN(const auto kernel,
                       SimulatedCudaKernels(/*seed=*/4).Create(spec, 1));
  const std::vector<Tensor> wanted = RunKernel(kernel.get(), spec, operands);
  operands[moved_operand] = NotAligned(operands[moved_operand]);
  const std::vector<Tensor> got = RunKernel(kernel.get(), spec, operands);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(std::memcmp(got[i].raw_data(), wanted[i].raw_data(),
                          wanted[i].size_bytes()),
              0)
        << "output " << i;
  }
}

TEST(DeviceConformanceTest, NormalizationsAreTheSameWhereVectorsAreNotAligned) {
  const Attributes epsilon = {{"epsilon", 1e-3}};
  RandomStream random(8);
  for (const DType dtype : {kF32, DType::kFloat64, DType::kBfloat16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const DType wide = dtype == DType::kFloat64 ? dtype : kF32;
    std::vector<Tensor> inputs = {RandomTensor({dtype, {700, 12}}, &random),
                                  RandomTensor({dtype, {700, 12}}, &random)};
    for (int i = 0; i < 3; ++i) {
      inputs.push_back(RandomTensor({wide, {12}, 0.5, 2}, &random));
    }
    ExpectSameIfNotAligned("BatchNormTraining", epsilon,
                           {inputs[1], inputs[2], inputs[3]}, 0);
    ExpectSameIfNotAligned("BatchNormTrainingGrad", epsilon, inputs, 1);
    ExpectSameIfNotAligned("LayerNorm", epsilon,
                           {inputs[1], inputs[2], inputs[3]}, 0);
    const OpInput of_rows = {wide, {700}, 0.5, 2};
    ExpectSameIfNotAligned(
        "LayerNormGrad", epsilon,
        {inputs[0], inputs[1], inputs[2], RandomTensor(of_rows, &random),
         RandomTensor(of_rows, &random)},
        1);
  }
}

TEST(DeviceConformanceTest, DepthwiseIsTheSameWhereVectorsAreNotAligned) {
  RandomStream random(9);
  for (const DType dtype : {kF32, DType::kBfloat16, DType::kFloat16}) {
    for (const int64_t window : {3, 5}) {
      SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", window ", window));
      const Attributes same = {{"padding", std::string("SAME")}};
      const OpInput image = {dtype, {1, 9, 50, 64}, -1, 1};
      const Tensor x = RandomTensor(image, &random);
      const Tensor y = RandomTensor(image, &random);
      const Tensor kernel =
          RandomTensor({dtype, {window, window, 64, 1}, -1, 1}, &random);
      for (const int moved : {0, 1}) {
        ExpectSameIfNotAligned("DepthwiseConv2D", same, {x, kernel}, moved);
        ExpectSameIfNotAligned("DepthwiseConv2DBackpropInput", same,
                               {y, kernel, x}, moved);
        ExpectSameIfNotAligned("DepthwiseConv2DBackpropKernel", same,
                               {x, y, kernel}, moved);
      }
    }
  }
}

TEST(DeviceConformanceTest, SoftmaxIsTheSameWhereVectorsAreNotAligned) {
  RandomStream random(10);
  for (const DType dtype : {kF32, DType::kBfloat16, DType::kFloat16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const Tensor x = RandomTensor({dtype, {9, 264}, -2, 2}, &random);
    const Tensor labels = RandomTensor({dtype, {9, 264}, 0, 1}, &random);
    const Tensor gradient = RandomTensor({dtype, {9}, -1, 1}, &random);
    ExpectSameIfNotAligned("Softmax", {}, {x}, 0);
    for (const int moved : {0, 1}) {
      ExpectSameIfNotAligned("SoftmaxCrossEntropyGrad", {},
                             {x, labels, gradient}, moved);
    }
  }
}

// The op that the runtime fuses: a matrix product, a bias row and an
// activation.
TEST(DeviceConformanceTest, FusedProductsMatchTheirParts) {
  RandomStream random(3);
  const std::vector<Tensor> inputs = {
      RandomTensor({kF32, {33, 40}, -1, 1}, &random),
      RandomTensor({kF32, {40, 70}, -1, 1}, &random),
      RandomTensor({kF32, {70}, -1, 1}, &random)};
  const TensorType type = {kF32, {33, 70}};
  const KernelRegistry device = SimulatedCudaKernels(/*seed=*/2);
  const auto run = [&](const KernelRegistry& kernels, const KernelSpec& spec,
                       const std::vector<Tensor>& operands) {
    const auto kernel = kernels.Create(spec, 1);
    EXPECT_OK(kernel);
    return RunKernel(kernel->get(), spec, operands)[0];
  };
  const Tensor product =
      run(ReferenceKernels(),
          {"MatMul", {}, {inputs[0].type(), inputs[1].type()}, {type}},
          {inputs[0], inputs[1]});
  const Tensor sum =
      run(ReferenceKernels(), {"Add", {}, {type, inputs[2].type()}, {type}},
          {product, inputs[2]});
  for (const std::string activation :
       {"", "Relu", "Relu6", "Tanh", "Sigmoid", "Gelu", "GeluTanh"}) {
    SCOPED_TRACE(activation);
    const bool is_approximate = activation == "GeluTanh";
    const Tensor wanted = activation.empty()
                              ? sum
                              : run(ReferenceKernels(),
                                    {is_approximate ? "Gelu" : activation,
                                     {{"approximate", is_approximate}},
                                     {type},
                                     {type}},
                                    {sum});
    ExpectClose(run(device,
                    {"FusedMatMulBias",
                     {{"activation", activation}},
                     {inputs[0].type(), inputs[1].type(), inputs[2].type()},
                     {type}},
                    inputs),
                wanted);
  }
}

}  // namespace
}  // namespace muster
