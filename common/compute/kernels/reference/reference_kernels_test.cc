#include "common/compute/kernels/reference/reference_kernels.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/compute/kernels/kernel.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Covers cases without golden values: other dtypes, the limits of their ranges,
// and invalid data.
namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
constexpr int32_t kGreatest = std::numeric_limits<int32_t>::max();
constexpr float kInf = std::numeric_limits<float>::infinity();

absl::StatusOr<Tensor> RunOp(const std::string& op, std::vector<Tensor> inputs,
                             const TensorType& output, Attributes attributes) {
  KernelSpec spec = {.op = op,
                     .attributes = std::move(attributes),
                     .inputs = {},
                     .outputs = {output}};
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) {
    spec.inputs.push_back(input.type());
    pointers.push_back(&input);
  }
  auto kernel = ReferenceKernels().Create(spec, 1);
  if (!kernel.ok()) return kernel.status();
  Tensor result(output.dtype, output.shape);
  Tensor* const result_pointer = &result;
  const absl::Status status = (*kernel)->Run(
      {.inputs = pointers, .outputs = {&result_pointer, 1}, .step_seed = 0});
  if (!status.ok()) return status;
  return result;
}

// Returns the elements of `op`'s output for `inputs`, with the type of the
// first input.
template <typename T>
std::vector<T> Elements(const std::string& op, std::vector<Tensor> inputs,
                        Attributes attributes = {}) {
  const TensorType type = {DTypeOf<T>(), inputs[0].shape()};
  const auto result = RunOp(op, inputs, type, std::move(attributes));
  EXPECT_OK(result);
  if (!result.ok()) return {};
  const auto flat = result->flat<T>();
  return {flat.begin(), flat.end()};
}

template <typename T>
Tensor Vector(std::initializer_list<T> values) {
  return Tensor::FromValues<T>({static_cast<int64_t>(values.size())}, values);
}

Tensor Ints(std::initializer_list<int32_t> values) {
  return Vector<int32_t>(values);
}

TEST(ReferenceKernelsTest, IntegersWrapAround) {
  EXPECT_THAT(Elements<int32_t>("Add", {Ints({kGreatest}), Ints({1})}),
              ElementsAre(kLeast));
  EXPECT_THAT(Elements<int32_t>("Sub", {Ints({kLeast}), Ints({1})}),
              ElementsAre(kGreatest));
  EXPECT_THAT(Elements<int32_t>("Mul", {Ints({kGreatest}), Ints({2})}),
              ElementsAre(-2));
  EXPECT_THAT(Elements<int32_t>("Neg", {Ints({kLeast, 3})}),
              ElementsAre(kLeast, -3));
  EXPECT_THAT(Elements<int32_t>("Abs", {Ints({kLeast, -3})}),
              ElementsAre(kLeast, 3));
  EXPECT_THAT(
      Elements<uint8_t>("Add", {Vector<uint8_t>({250}), Vector<uint8_t>({10})}),
      ElementsAre(4));
}

TEST(ReferenceKernelsTest, LowestIntegerByMinusOneDoesNotTrap) {
  const Tensor least = Ints({kLeast});
  const Tensor minus_one = Ints({-1});
  EXPECT_THAT(Elements<int32_t>("Div", {least, minus_one}),
              ElementsAre(kLeast));
  EXPECT_THAT(Elements<int32_t>("FloorDiv", {least, minus_one}),
              ElementsAre(kLeast));
  EXPECT_THAT(Elements<int32_t>("Mod", {least, minus_one}), ElementsAre(0));
}

TEST(ReferenceKernelsTest, DividingAnIntegerByZeroIsAnError) {
  for (const char* op : {"Div", "FloorDiv", "Mod"}) {
    EXPECT_THAT(
        RunOp(op, {Ints({4, 4}), Ints({2, 0})}, {DType::kInt32, {2}}, {}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("division by zero, at element 1")))
        << op;
  }
}

TEST(ReferenceKernelsTest, DividingAFloatByZeroIsInfinite) {
  EXPECT_THAT(
      Elements<float>("Div", {Vector<float>({1, -1}), Vector<float>({0, 0})}),
      ElementsAre(kInf, -kInf));
}

TEST(ReferenceKernelsTest, NegativeIntegerPowerIsAnError) {
  EXPECT_THAT(
      RunOp("Pow", {Ints({2}), Ints({-1})}, {DType::kInt32, {1}}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element 0")));
}

TEST(ReferenceKernelsTest, MaximumMinimumAndReductionsPropagateNan) {
  const Tensor some = Vector<float>({1, std::nanf(""), 3});
  const Tensor twos = Vector<float>({2, 2, std::nanf("")});
  for (const char* op : {"Maximum", "Minimum"}) {
    const auto result = Elements<float>(op, {some, twos});
    EXPECT_THAT(result[1], IsNan()) << op;
    EXPECT_THAT(result[2], IsNan()) << op;
  }
  for (const char* op : {"Max", "Min"}) {
    const auto result = RunOp(op, {some}, {DType::kFloat32, {}},
                              {{"axes", std::vector<int64_t>{0}}});
    ASSERT_OK(result);
    EXPECT_THAT(result->scalar<float>(), IsNan()) << op;
  }
}

TEST(ReferenceKernelsTest, FloatsThatDoNotFitBecomeTheNearestInteger) {
  const Tensor x = Vector<float>({3e9f, -3e9f, kInf, -kInf, std::nanf(""), -1});
  EXPECT_THAT(Elements<int32_t>("Cast", {x}),
              ElementsAre(kGreatest, kLeast, kGreatest, kLeast, 0, -1));
  EXPECT_THAT(Elements<uint8_t>("Cast", {x}),
              ElementsAre(255, 0, 255, 0, 0, 0));
}

TEST(ReferenceKernelsTest, SixteenBitFloatsAreComputedInFloat) {
  const auto half = [](float value) { return float16(value); };
  const Tensor x = Vector<float16>({half(1), half(-2), half(0.5f)});
  const auto y = Elements<float16>("Mul", {x, x});
  EXPECT_EQ(static_cast<float>(y[1]), 4);
  // A sum of ones in bfloat16 would stop at 256.
  const Tensor ones = Tensor::Full(DType::kBfloat16, {4096}, 1);
  const auto sum = RunOp("Sum", {ones}, {DType::kBfloat16, {}},
                         {{"axes", std::vector<int64_t>{0}}});
  ASSERT_OK(sum);
  EXPECT_EQ(sum->ElementAsDouble(0), 4096);
}

TEST(ReferenceKernelsTest, ExtremeLogitsNeitherOverflowNorVanish) {
  const Tensor x = Vector<float>({1e4f, -1e4f, 0});
  EXPECT_THAT(Elements<float>("Sigmoid", {x}), ElementsAre(1, 0, 0.5));
  EXPECT_THAT(Elements<float>("Softplus", {x}),
              ElementsAre(1e4f, 0, std::log(2.0f)));
  EXPECT_THAT(Elements<float>("Softmax", {x}), ElementsAre(1, 0, 0));
  EXPECT_THAT(Elements<float>("LogSoftmax", {x}), ElementsAre(0, -2e4f, -1e4f));
  EXPECT_THAT(
      Elements<float>("SigmoidCrossEntropy", {x, Vector<float>({0, 1, 1})}),
      ElementsAre(1e4f, 1e4f, std::log(2.0f)));
}

TEST(ReferenceKernelsTest, NamesAnIndexOutOfRange) {
  const Tensor table = Tensor::Zeros(DType::kFloat32, {4, 2});
  const Tensor rows = Tensor::Zeros(DType::kFloat32, {3, 2});
  for (const int32_t wrong : {4, -1, kLeast}) {
    const Tensor ids = Ints({0, 3, wrong});
    const std::string message =
        "index " + std::to_string(wrong) + " at element 2 is not in [0, 4)";
    const auto refuses =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
    EXPECT_THAT(RunOp("Gather", {table, ids}, rows.type(), {}), refuses);
    EXPECT_THAT(RunOp("ScatterRowsLike", {rows, ids, table}, table.type(), {}),
                refuses);
    EXPECT_THAT(RunOp("OneHot", {ids}, {DType::kFloat32, {3, 4}},
                      {{"depth", int64_t{4}}}),
                refuses);
  }
}

TEST(ReferenceKernelsTest, NamesALabelOutOfRange) {
  const Tensor logits = Tensor::Zeros(DType::kFloat32, {2, 3});
  const Tensor labels = Vector<int64_t>({2, 3});
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, {2});
  const auto refuses =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("label 3 at element 1 is not in [0, 3)"));
  EXPECT_THAT(
      RunOp("SparseSoftmaxCrossEntropy", {logits, labels}, gradient.type(), {}),
      refuses);
  EXPECT_THAT(RunOp("SparseSoftmaxCrossEntropyGrad", {logits, labels, gradient},
                    logits.type(), {}),
              refuses);
}

TEST(ReferenceKernelsTest, TargetOutOfRangeIsNotInTopK) {
  const Tensor predictions =
      Tensor::FromValues<float>({4, 2}, {0, 1, 0, 1, 0, kInf, 0, 1});
  const Tensor targets = Ints({2, -1, 1, 1});
  const auto found = RunOp("InTopK", {predictions, targets},
                           {DType::kBool, {4}}, {{"k", int64_t{1}}});
  ASSERT_OK(found);
  EXPECT_THAT(found->flat<bool>(), ElementsAre(false, false, false, true));
}

TEST(ReferenceKernelsTest, RepeatedRowsAreSummed) {
  const Tensor values = Tensor::FromValues<float>({3, 1}, {1, 2, 4});
  const Tensor like = Tensor::Zeros(DType::kFloat32, {3, 1});
  EXPECT_THAT(
      Elements<float>("ScatterRowsLike", {values, Ints({2, 0, 2}), like}),
      ElementsAre(2, 0, 5));
}

TEST(ReferenceKernelsTest, ProductsOfOthersHandleZeros) {
  EXPECT_THAT(Elements<float>("ProdOfOthers", {Vector<float>({2, 0, 3})},
                              {{"axes", std::vector<int64_t>{0}}}),
              ElementsAre(0, 6, 0));
}

TEST(ReferenceKernelsTest, HandlesEmptyTensors) {
  const TensorType empty = {DType::kFloat32, {0, 3}};
  const Tensor x = Tensor::Zeros(empty.dtype, empty.shape);
  for (const char* op : {"Relu", "Softmax", "Identity", "ZerosLike"}) {
    EXPECT_OK(RunOp(op, {x}, empty, {})) << op;
  }
  EXPECT_OK(RunOp("Add", {x, x}, empty, {}));
  EXPECT_OK(RunOp("Transpose", {x}, {DType::kFloat32, {3, 0}},
                  {{"permutation", std::vector<int64_t>{1, 0}}}));
  const auto sum = RunOp("Sum", {x}, {DType::kFloat32, {3}},
                         {{"axes", std::vector<int64_t>{0}}});
  ASSERT_OK(sum);
  EXPECT_THAT(sum->flat<float>(), ElementsAre(0, 0, 0));
}

TEST(ReferenceKernelsTest, StringsHaveNoKernels) {
  const TensorType text = {DType::kString, {2}};
  for (const char* op : {"Add", "Equal", "Neg", "Cast", "Identity", "OnesLike",
                         "BroadcastLike", "Concat", "Sum", "Gather", "Relu"}) {
    const KernelSpec spec = {
        .op = op, .attributes = {}, .inputs = {text, text}, .outputs = {text}};
    EXPECT_THAT(ReferenceKernels().Create(spec, 1),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(op)));
  }
}

TEST(ReferenceKernelsTest, ElementwiseOutputsMayShareInputMemory) {
  for (const char* op :
       {"Add", "Sub", "Mul", "Div", "Maximum", "Pow", "SquaredDifference",
        "ReluGrad", "EluGrad", "TanhGrad", "SigmoidCrossEntropy"}) {
    const Tensor inputs[2] = {Vector<float>({0.3f, 0.7f, 1.4f, 2.0f}),
                              Vector<float>({1.5f, 0.4f, -0.6f, 0.9f})};
    const auto apart =
        Elements<float>(op, {inputs[0], inputs[1]}, {{"alpha", 0.5}});
    for (int shared = 0; shared < 2; ++shared) {
      const KernelSpec spec = {.op = op,
                               .attributes = {{"alpha", 0.5}},
                               .inputs = {inputs[0].type(), inputs[1].type()},
                               .outputs = {inputs[0].type()}};
      ASSERT_OK_AND_ASSIGN(const auto kernel,
                           ReferenceKernels().Create(spec, 1));
      ASSERT_TRUE(kernel->MayShareOutputWithInput(shared)) << op;
      Tensor copies[2] = {inputs[0].Clone(), inputs[1].Clone()};
      const Tensor* const pointers[] = {&copies[0], &copies[1]};
      Tensor* output = &copies[shared];
      ASSERT_OK(kernel->Run(
          {.inputs = pointers, .outputs = {&output, 1}, .step_seed = 0}));
      EXPECT_THAT(copies[shared].flat<float>(),
                  ::testing::ElementsAreArray(apart))
          << op;
    }
  }
}

TEST(ReferenceKernelsTest, BroadcastInputsAreNotShared) {
  const KernelSpec spec = {
      .op = "Add",
      .attributes = {},
      .inputs = {{DType::kFloat32, {2, 3}}, {DType::kFloat32, {3}}},
      .outputs = {{DType::kFloat32, {2, 3}}}};
  ASSERT_OK_AND_ASSIGN(const auto kernel, ReferenceKernels().Create(spec, 1));
  EXPECT_TRUE(kernel->MayShareOutputWithInput(0));
  EXPECT_FALSE(kernel->MayShareOutputWithInput(1));
}

}  // namespace
}  // namespace muster
