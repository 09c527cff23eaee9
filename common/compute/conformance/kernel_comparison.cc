#include "common/compute/conformance/kernel_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "gtest/gtest.h"

namespace muster {

Tensor RandomTensor(const OpInput& input, RandomStream* random) {
  Tensor tensor(input.dtype, input.shape);
  if (input.dtype == DType::kString) {
    for (std::string& element : tensor.mutable_flat<std::string>()) {
      element = absl::StrCat("Word ", random->Below(6), "!");
    }
    return tensor;
  }
  VisitNumber(input.dtype, [&]<typename T>() {
    for (T& element : tensor.mutable_flat<T>()) {
      const double unit =
          static_cast<double>(random->Below(1 << 24)) / (1 << 24);
      const double value = input.low + unit * (input.high - input.low);
      if constexpr (std::is_same_v<T, bool>) {
        element = unit < 0.5;
      } else if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(std::floor(value));
      } else {
        element = T(static_cast<float>(value));
      }
    }
  });
  return tensor;
}

namespace {

// Returns the maximum difference of two results, relative to the larger of 1
// and the magnitude.
double Tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 2e-5;
    case DType::kFloat64:
      return 1e-12;
    case DType::kBfloat16:
      return 2e-2;
    case DType::kFloat16:
      return 2e-3;
    default:
      return 0;
  }
}

}  // namespace

void ExpectClose(const Tensor& got, const Tensor& wanted) {
  ExpectClose(got, wanted, got.dtype());
}

void ExpectClose(const Tensor& got, const Tensor& wanted, DType computed) {
  ASSERT_EQ(got.type(), wanted.type());
  if (got.dtype() == DType::kString) {
    ASSERT_EQ(got.flat<std::string>(), wanted.flat<std::string>());
    return;
  }
  const double tolerance =
      std::max(Tolerance(got.dtype()), Tolerance(computed));
  for (int64_t i = 0; i < got.element_count(); ++i) {
    const double a = got.ElementAsDouble(i);
    const double b = wanted.ElementAsDouble(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::fabs(a - b), tolerance * std::max(1.0, std::fabs(b)))
        << "at element " << i << ": " << a << ", not " << b;
  }
}

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

std::vector<Tensor> RunKernel(Kernel* kernel, const KernelSpec& spec,
                              const std::vector<Tensor>& inputs,
                              const Tensor* shared) {
  std::vector<Tensor> outputs;
  for (const TensorType& type : spec.outputs) {
    outputs.emplace_back(type.dtype, type.shape);
    Tensor& output = outputs.back();
    if (type.dtype == DType::kString) continue;
    std::fill_n(output.mutable_raw_data(), output.size_bytes(),
                type.dtype == DType::kBool ? 0 : 0xff);
  }
  if (shared != nullptr) {
    outputs[0] =
        Tensor(spec.outputs[0].dtype, spec.outputs[0].shape, shared->buffer());
  }
  std::vector<Tensor*> pointers;
  for (Tensor& output : outputs) pointers.push_back(&output);
  // The scratch memory is also filled with NaN.
  const auto scratch = Buffer::Allocate(kernel->scratch_bytes());
  std::fill_n(scratch->data(), scratch->size_bytes(), 0xff);
  EXPECT_OK(kernel->Run({.inputs = Pointers(inputs),
                         .outputs = pointers,
                         .step_seed = 5,
                         .example_offset = 3,
                         .scratch = {scratch->data(), scratch->size_bytes()}}));
  return outputs;
}

absl::StatusOr<KernelSpec> SpecOf(const std::string& op,
                                  const Attributes& attributes,
                                  const std::vector<Tensor>& inputs,
                                  const Subgraphs& subgraphs) {
  const OpSchema& schema = BuiltinOps().FindOrPlain(op);
  KernelSpec spec = {
      .op = op,
      .attributes = attributes,
      .is_elementwise = schema.is_elementwise,
      .widens_low_precision =
          schema.low_precision == LowPrecisionPolicy::kThroughFloat32};
  for (const Tensor& input : inputs) spec.inputs.push_back(input.type());
  ASSIGN_OR_RETURN(spec.outputs,
                   BuiltinOps().InferTypes(
                       op, "test",
                       {.inputs = spec.inputs,
                        .attributes = attributes,
                        .replica_inputs = absl::MakeConstSpan(&spec.inputs, 1),
                        .subgraphs = subgraphs}));
  spec.subgraphs = InterpretedSubgraphs(subgraphs);
  return spec;
}

void ExpectConforms(const KernelRegistry& kernels, const OpCase& c,
                    int thread_count) {
  SCOPED_TRACE(Describe(c));
  RandomStream random(FoldIn(11, Describe(c)));
  std::vector<Tensor> inputs;
  for (const OpInput& input : c.inputs) {
    inputs.push_back(RandomTensor(input, &random));
  }
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                       SpecOf(c.op, c.attributes, inputs, c.subgraphs));
  ASSERT_OK_AND_ASSIGN(const auto reference,
                       ReferenceKernels().Create(spec, 1));
  ASSERT_OK_AND_ASSIGN(const auto fast, kernels.Create(spec, thread_count));
  const std::vector<Tensor> wanted = RunKernel(reference.get(), spec, inputs);
  const std::vector<Tensor> got = RunKernel(fast.get(), spec, inputs);
  for (size_t i = 0; i < wanted.size(); ++i) ExpectClose(got[i], wanted[i]);

  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!fast->MayShareOutputWithInput(static_cast<int>(i))) continue;
    SCOPED_TRACE(absl::StrCat("in place of input ", i));
    std::vector<Tensor> overwritten = inputs;
    overwritten[i] = inputs[i].Clone();
    ExpectClose(RunKernel(fast.get(), spec, overwritten, &overwritten[i])[0],
                wanted[0]);
  }
}

}  // namespace muster
