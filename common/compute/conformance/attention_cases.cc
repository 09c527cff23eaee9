#include "common/compute/conformance/attention_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

AttentionCase WithHeads(DType dtype, int64_t batch, int64_t time,
                        int64_t source_time, int64_t heads, int64_t key_dim,
                        int64_t value_dim) {
  return {.dtype = dtype,
          .q = {batch, time, heads, key_dim},
          .k = {batch, source_time, heads, key_dim},
          .v = {batch, source_time, heads, value_dim},
          .scale = 1 / std::sqrt(static_cast<double>(key_dim))};
}

AttentionCase WithMask(AttentionCase one, const Shape& mask) {
  one.mask = mask;
  return one;
}

AttentionCase Causal(AttentionCase one) {
  one.is_causal = true;
  return one;
}

// Returns a mask that is true at and before the diagonal.
Tensor CausalMask(int64_t time, int64_t source_time) {
  Tensor mask(DType::kBool, {time, source_time});
  for (int64_t i = 0; i < mask.element_count(); ++i) {
    mask.mutable_flat<bool>()[i] = i % source_time <= i / source_time;
  }
  return mask;
}

// Returns a mask with some keys for most queries and no key for every fifth
// query.
Tensor MaskOf(const Shape& shape, RandomStream* random) {
  Tensor mask(DType::kBool, shape);
  const int64_t row = shape.dims().back();
  for (int64_t i = 0; i < mask.element_count(); ++i) {
    mask.mutable_flat<bool>()[i] =
        i / row % 5 != 2 && random->Next64() % 4 != 0;
  }
  return mask;
}

std::vector<Shape> InputShapes(const AttentionCase& one) {
  std::vector<int64_t> output(one.q.dims().begin(), one.q.dims().end());
  output.back() = one.v.dims().back();
  return {one.q, one.k, one.v, Shape(output)};
}

// Swaps heads and time, if there are heads.
Value Swapped(Value x) {
  return x.shape().rank() == 4 ? Transpose(x, {0, 2, 1, 3}) : x;
}

absl::StatusOr<Graph> Trace(const AttentionCase& one,
                            const AttentionTracing& tracing, bool in_float32) {
  GraphBuilder builder(&BuiltinOps(), "attention");
  std::vector<Value> inputs;
  for (const Shape& shape : InputShapes(one)) {
    const Value input = builder.Parameter(absl::StrCat("input", inputs.size()),
                                          {one.dtype, shape});
    inputs.push_back(in_float32 ? Cast(input, DType::kFloat32) : input);
  }
  const Value query =
      one.scale == 1 ? Swapped(inputs[0]) : Swapped(inputs[0]) * one.scale;
  Value scores = MatMul(query, Swapped(inputs[1]), {.transpose_b = true});
  if (one.is_causal) {
    const Value mask = builder.Constant(CausalMask(one.q.dim(1), one.k.dim(1)));
    scores = Select(mask, scores, ScalarLike(scores, -3e4));
  }
  if (one.mask.rank() > 0) {
    const Value mask = builder.Parameter("mask", {DType::kBool, one.mask});
    scores = Select(mask, scores, ScalarLike(scores, -3e4));
  }
  const Value p = Softmax(scores);
  const Value o = Swapped(MatMul(p, Swapped(inputs[2])));
  builder.AddResult(o);
  if (tracing.has_gradients) {
    const std::vector<Value> sources(inputs.begin(), inputs.begin() + 3);
    const std::vector<Gradient> gradients =
        Gradients(Sum(o * inputs[3]), sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      builder.AddResult(DenseGradient(gradients[i], sources[i]));
    }
  }
  if (tracing.keeps_probabilities) builder.AddResult(p);
  return std::move(builder).Build();
}

}  // namespace

std::string Describe(const AttentionCase& one) {
  return absl::StrCat(DTypeString(one.dtype), one.q.ToString(),
                      one.k.ToString(), one.v.ToString(), " scale ", one.scale,
                      one.is_causal ? " causal" : "",
                      one.mask.rank() > 0 ? " mask " : "",
                      one.mask.rank() > 0 ? one.mask.ToString() : "");
}

std::vector<AttentionCase> AttentionCases() {
  constexpr DType kBf16 = DType::kBfloat16;
  return {
      WithHeads(kBf16, 2, 128, 128, 2, 64, 64),
      WithHeads(DType::kFloat16, 1, 128, 128, 2, 64, 64),
      WithHeads(kBf16, 1, 64, 256, 3, 32, 32),
      WithHeads(kBf16, 2, 9, 128, 1, 128, 128),
      WithHeads(kBf16, 2, 77, 45, 3, 16, 16),
      WithHeads(kBf16, 1, 130, 70, 2, 64, 32),
      WithHeads(kBf16, 3, 1, 5, 2, 8, 8),
      {.q = {3, 40, 24}, .k = {3, 128, 24}, .v = {3, 128, 16}},
      Causal(WithHeads(kBf16, 2, 128, 128, 2, 64, 64)),
      Causal(WithHeads(DType::kFloat16, 1, 300, 256, 2, 64, 64)),
      Causal(WithHeads(kBf16, 1, 70, 130, 3, 32, 32)),
      // The fourth shape is that of a padding mask.
      WithMask(WithHeads(kBf16, 2, 128, 128, 2, 64, 64), {2, 1, 128, 128}),
      WithMask(WithHeads(kBf16, 2, 40, 128, 3, 64, 64), {2, 3, 40, 128}),
      WithMask(WithHeads(DType::kFloat16, 2, 128, 128, 2, 64, 64), {128, 128}),
      WithMask(WithHeads(kBf16, 3, 100, 256, 2, 64, 64), {3, 1, 1, 256}),
      WithMask(WithHeads(kBf16, 2, 77, 45, 3, 16, 16), {2, 1, 77, 45}),
      WithMask(WithHeads(kBf16, 3, 1, 5, 2, 8, 8), {3, 1, 1, 5}),
      WithMask({.q = {3, 40, 24}, .k = {3, 128, 24}, .v = {3, 128, 16}},
               {3, 40, 128})};
}

std::vector<Tensor> AttentionInputs(const AttentionCase& one) {
  RandomStream random(FoldIn(3, Describe(one)));
  std::vector<Tensor> inputs;
  for (const Shape& shape : InputShapes(one)) {
    inputs.push_back(RandomTensor({one.dtype, shape, -1, 1}, &random));
  }
  if (one.mask.rank() > 0) inputs.push_back(MaskOf(one.mask, &random));
  return inputs;
}

absl::StatusOr<Graph> TraceAttention(const AttentionCase& one,
                                     const AttentionTracing& tracing) {
  return Trace(one, tracing, /*in_float32=*/false);
}

absl::StatusOr<std::vector<Tensor>> WantedAttention(const AttentionCase& one) {
  ASSIGN_OR_RETURN(Graph graph, Trace(one, {}, /*in_float32=*/true));
  ASSIGN_OR_RETURN(const auto executable,
                   Executable::Compile(std::move(graph), BuiltinOps(),
                                       CpuKernels(), /*variables=*/nullptr));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(executable->Run(AttentionInputs(one), {}, &results));
  return results;
}

void ExpectAttentionClose(const AttentionCase& one,
                          const std::vector<Tensor>& got,
                          const std::vector<Tensor>& wanted) {
  const double tolerance = one.dtype == DType::kBfloat16 ? 0.02 : 0.003;
  ASSERT_LE(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].shape(), wanted[i].shape());
    double greatest = 0;
    for (int64_t j = 0; j < wanted[i].element_count(); ++j) {
      greatest = std::max(greatest, std::fabs(wanted[i].ElementAsDouble(j)));
    }
    for (int64_t j = 0; j < wanted[i].element_count(); ++j) {
      ASSERT_NEAR(got[i].ElementAsDouble(j), wanted[i].ElementAsDouble(j),
                  tolerance * greatest)
          << "result " << i << ", element " << j;
    }
  }
}

}  // namespace muster
