// Compares the fast kernels of all ops with the reference kernels on random
// data.

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/conformance/case_types.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/kernels/vectorized.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

TEST(KernelConformanceTest, FastKernelsMatchTheReference) {
  const internal::VectorWidth widest = internal::VectorWidthInUse();
  for (const auto width :
       {internal::VectorWidth::kBaseline, internal::VectorWidth::kAvx2,
        internal::VectorWidth::kAvx512}) {
    if (width > widest) continue;
    SCOPED_TRACE(absl::StrCat("width ", static_cast<int>(width)));
    internal::VectorWidthInUse() = width;
    for (const OpCase& c : AllKernelCases()) ExpectConforms(CpuKernels(), c);
  }
  internal::VectorWidthInUse() = widest;
}

TEST(KernelConformanceTest, CoversAllOpsWithKernels) {
  std::set<std::string> compared;
  for (const OpCase& c : AllKernelCases()) compared.insert(c.op);
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (schema->reads == OpReads::kPlugin) continue;  // Has one kernel only.
    EXPECT_TRUE(!schema->has_kernel() || compared.contains(schema->name))
        << schema->name << " has no case: declare it is_elementwise with "
        << "samples that its type rule accepts, or add cases to "
           "kernel_cases.cc";
  }
}

// The shapes are large enough to be split over threads: into rows, into columns
// with a larger last part, and into the products of a batch.
TEST(KernelConformanceTest, MatMulMatchesTheReferenceOnSeveralThreads) {
  struct Shapes {
    Shape a, b, transposed_a, transposed_b;
  };
  SetIntraOpThreadCount(8);
  for (const int thread_count : {2, 3}) {
    SCOPED_TRACE(thread_count);
    for (const Shapes& s :
         {Shapes{{301, 200}, {200, 100}, {200, 301}, {100, 200}},
          {{65, 310}, {310, 300}, {310, 65}, {300, 310}},
          {{5, 80, 90}, {5, 90, 170}, {5, 90, 80}, {5, 170, 90}},
          {{5, 80, 90}, {1, 90, 170}, {5, 90, 80}, {1, 170, 90}},
          {{3, 1200, 900}, {900, 1}, {3, 900, 1200}, {1, 900}}}) {
      for (const DType dtype : {kF32, DType::kBfloat16}) {
        for (const bool transpose_a : {false, true}) {
          for (const bool transpose_b : {false, true}) {
            ExpectConforms(
                CpuKernels(),
                {"MatMul",
                 {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                 {{dtype, transpose_a ? s.transposed_a : s.a, 0, 1},
                  {dtype, transpose_b ? s.transposed_b : s.b, 0, 1}}},
                thread_count);
          }
        }
      }
    }
  }
}

// Includes more threads than images, so that images are split into strips.
TEST(KernelConformanceTest, LargeKernelsMatchTheReferenceOnSeveralThreads) {
  SetIntraOpThreadCount(8);
  for (const int thread_count : {2, 3, 8}) {
    SCOPED_TRACE(thread_count);
    for (const OpCase& c : AllKernelCases()) {
      if (absl::StrContains(c.op, "Conv2D") ||
          absl::StrContains(c.op, "Pool2D") ||
          absl::StrContains(c.op, "Recurrence") ||
          absl::StrContains(c.op, "BatchNorm") ||
          absl::StrContains(c.op, "LayerNorm")) {
        ExpectConforms(CpuKernels(), c, thread_count);
      }
    }
  }
}

// Runs both kernels on these inputs.
void ExpectSame(const std::string& op, const Attributes& attributes,
                const std::vector<Tensor>& inputs) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, SpecOf(op, attributes, inputs));
  ASSERT_OK_AND_ASSIGN(const auto reference,
                       ReferenceKernels().Create(spec, 1));
  ASSERT_OK_AND_ASSIGN(const auto fast, CpuKernels().Create(spec, 1));
  std::vector<Tensor> wanted = RunKernel(reference.get(), spec, inputs);
  const Tensor got = RunKernel(fast.get(), spec, inputs)[0];
  for (int64_t i = 0; i < got.element_count(); ++i) {
    // -inf times 0 is NaN. A vector kernel that rounds the 0 up returns -inf
    // instead.
    const bool may_differ =
        got.dtype() == kF32 && std::isnan(wanted[0].ElementAsDouble(i));
    if (!may_differ) continue;
    ASSERT_FALSE(std::isfinite(got.ElementAsDouble(i))) << "at element " << i;
    wanted[0].mutable_flat<float>()[i] = got.flat<float>()[i];
  }
  ExpectClose(got, wanted[0]);
}

// Runs all elementwise ops that accept such inputs.
void ExpectSameElementwise(const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (!schema->is_elementwise) continue;
    for (const OpCase& one :
         ElementwiseCases(*schema, inputs[0].dtype(), shapes)) {
      SCOPED_TRACE(Describe(one));
      ExpectSame(one.op, one.attributes, inputs);
    }
  }
}

// NaN and infinity must be propagated, because they reveal divergence.
TEST(KernelConformanceTest, PropagatesSpecialValues) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::FromValues<float>(
      {2, 9}, {kNan, kInf, -kInf, 0.0f, -0.0f, 1e-40f, 88.8f, -104.0f, 3e38f,
               1.0f, 2.0f, kNan, 0.5f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f});
  ExpectSameElementwise({x});
  for (const char* op : {"Softmax", "LogSoftmax", "Max", "Min", "Sum", "Mean",
                         "ArgMax", "ArgMin"}) {
    SCOPED_TRACE(op);
    ExpectSame(op, {{"axes", Axes{1}}, {"axis", int64_t{1}}}, {x});
  }
}

TEST(KernelConformanceTest, PropagatesPairsOfSpecialValues) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> a;
  std::vector<float> b;
  for (const float x : {kNan, kInf, -kInf, 0.0f, 1.0f, 7.0f}) {
    for (const float y : {kNan, kInf, -kInf, 0.0f, 1.0f, 7.0f}) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  ExpectSameElementwise(
      {Tensor::FromSpan<float>({36}, absl::MakeConstSpan(a)),
       Tensor::FromSpan<float>({36}, absl::MakeConstSpan(b))});
}

TEST(KernelConformanceTest, RejectsIndicesAndLabelsOutOfRange) {
  const Tensor rows = Tensor::Zeros(kF32, {3, 2});
  for (const int64_t bad : {int64_t{-1}, int64_t{3}, int64_t{1} << 40}) {
    const Tensor indices = Tensor::FromValues<int64_t>({2}, {0, bad});
    const Tensor labels = Tensor::FromValues<int64_t>({3}, {0, 1, bad});
    const std::vector<std::pair<std::string, std::vector<Tensor>>> runs = {
        {"Gather", {rows, indices}},
        {"ScatterRowsLike", {Tensor::Zeros(kF32, {2, 2}), indices, rows}},
        {"OneHot", {indices}},
        {"SparseSoftmaxCrossEntropy", {rows, labels}},
        {"SparseSoftmaxCrossEntropyGrad",
         {rows, labels, Tensor::Zeros(kF32, {3})}}};
    for (const auto& [op, inputs] : runs) {
      ASSERT_OK_AND_ASSIGN(
          const KernelSpec spec,
          SpecOf(op, {{"depth", int64_t{3}}, {"dtype", kF32}}, inputs));
      ASSERT_OK_AND_ASSIGN(const auto kernel, CpuKernels().Create(spec, 1));
      Tensor output(spec.outputs[0].dtype, spec.outputs[0].shape);
      Tensor* const output_pointer = &output;
      EXPECT_THAT(kernel->Run({.inputs = Pointers(inputs),
                               .outputs = {&output_pointer, 1}}),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           testing::HasSubstr(absl::StrCat(bad))))
          << op;
    }
  }
}

// The op that the runtime fuses: a matrix product, a bias row and an
// activation.
void ExpectFusedIsOneAfterTheOther(int64_t rows, int64_t inner,
                                   int64_t columns) {
  RandomStream random(3);
  const auto run = [](const KernelSpec& spec,
                      const std::vector<Tensor>& inputs) {
    auto kernel = CpuKernels().Create(spec, /*thread_count=*/2);
    EXPECT_OK(kernel);
    return RunKernel(kernel->get(), spec, inputs)[0];
  };
  for (const std::string activation :
       {"", "Relu", "Relu6", "Tanh", "Sigmoid", "Gelu", "GeluTanh"}) {
    for (const bool transpose : {false, true}) {
      SCOPED_TRACE(activation);
      const std::vector<Tensor> inputs = {
          RandomTensor(
              {kF32, transpose ? Shape{inner, rows} : Shape{rows, inner}, -1,
               1},
              &random),
          RandomTensor({kF32, {inner, columns}, -1, 1}, &random),
          RandomTensor({kF32, {columns}, -1, 1}, &random)};
      const TensorType type = {kF32, {rows, columns}};
      const Tensor product = run({"MatMul",
                                  {{"transpose_a", transpose}},
                                  {inputs[0].type(), inputs[1].type()},
                                  {type}},
                                 {inputs[0], inputs[1]});
      Tensor wanted = run({"Add", {}, {type, inputs[2].type()}, {type}},
                          {product, inputs[2]});
      if (!activation.empty()) {
        const bool is_gelu_tanh = activation == "GeluTanh";
        wanted = run({is_gelu_tanh ? "Gelu" : activation,
                      {{"approximate", is_gelu_tanh}},
                      {type},
                      {type}},
                     {wanted});
      }
      ExpectClose(run({"FusedMatMulBias",
                       {{"transpose_a", transpose}, {"activation", activation}},
                       {inputs[0].type(), inputs[1].type(), inputs[2].type()},
                       {type}},
                      inputs),
                  wanted);
    }
  }
}

TEST(KernelConformanceTest, FusedProductsMatchTheirParts) {
  ExpectFusedIsOneAfterTheOther(33, 40, 17);
  // Large enough for two threads.
  ExpectFusedIsOneAfterTheOther(65, 310, 300);
  ExpectFusedIsOneAfterTheOther(400, 100, 70);
}

TEST(KernelConformanceTest, FusedReluPropagatesNan) {
  const TensorType type = {kF32, {16, 16}};
  const KernelSpec spec = {"FusedMatMulBias",
                           {{"activation", std::string("Relu")}},
                           {type, type, {kF32, {16}}},
                           {type}};
  ASSERT_OK_AND_ASSIGN(const auto kernel, CpuKernels().Create(spec, 1));
  const Tensor nan = Tensor::Full(kF32, {16, 16}, std::nan(""));
  const Tensor out =
      RunKernel(kernel.get(), spec, {nan, nan, Tensor::Zeros(kF32, {16})})[0];
  EXPECT_TRUE(std::isnan(out.flat<float>()[0]));
}

}  // namespace
}  // namespace muster
