// Builds cuDNN's execution plans of attention for an H100, which may be absent.
// Tests which compositions of operations the engines support, and that the
// attention that layers trace becomes one of them.

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/attention.h"
#include "common/compute/kernels/cuda/cudnn/attention_plan.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/attention_fusion.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/layers/masking.h"
#include "common/learn/nn/losses.h"
#include "common/learn/train/base/step_graphs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/described_gpu.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AttentionPlansTest : public DescribedGpuTest {
 protected:
  static void SetUpTestSuite() {
    // cuDNN uses the driver that is already loaded.
    ASSERT_NE(dlopen("tests/gpu/absent_driver.so", RTLD_NOW | RTLD_GLOBAL),
              nullptr)
        << dlerror();
  }
};

// The attention of a transformer block of width 1024.
constexpr AttentionGeometry kBlock = {.batch = 32,
                                      .heads = 16,
                                      .query_count = 512,
                                      .key_count = 512,
                                      .key_dim = 64,
                                      .value_dim = 64};

TEST_F(AttentionPlansTest, AttentionOfATransformerBlockAndItsGradient) {
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
    AttentionProblem problem = {
        .dtype = dtype, .geometry = kBlock, .scale = 0.125};
    SCOPED_TRACE(Describe(problem));
    ASSERT_OK_AND_ASSIGN(const CudnnPlan forward,
                         MakeCudnnPlan(target_, problem));
    EXPECT_LT(forward.workspace_bytes(), 1 << 20);
    problem.is_gradient = true;
    ASSERT_OK_AND_ASSIGN(const CudnnPlan gradient,
                         MakeCudnnPlan(target_, problem));
    // The workspace holds the gradient of the scores, which reproducible
    // engines keep, and little else.
    const int64_t scores_bytes = int64_t{2} * 32 * 16 * 512 * 512;
    EXPECT_GE(gradient.workspace_bytes(), scores_bytes);
    EXPECT_LT(gradient.workspace_bytes(), scores_bytes + (1 << 20));
  }
}

TEST_F(AttentionPlansTest, BiasesOfAllExtents) {
  const std::array<int64_t, 4> biases[] = {{1, 1, 512, 512},
                                           {32, 1, 512, 512},
                                           {32, 16, 512, 512},
                                           {1, 16, 512, 512}};
  for (const std::array<int64_t, 4>& bias : biases) {
    for (const bool is_gradient : {false, true}) {
      AttentionProblem problem = {.dtype = DType::kBfloat16,
                                  .geometry = kBlock,
                                  .scale = 0.125,
                                  .is_gradient = is_gradient};
      problem.geometry.bias_extents = bias;
      SCOPED_TRACE(Describe(problem));
      ASSERT_OK_AND_ASSIGN(const CudnnPlan plan,
                           MakeCudnnPlan(target_, problem));
      EXPECT_EQ(plan.operand_ids().size(), is_gradient ? 11u : 6u);
    }
  }
}

TEST_F(AttentionPlansTest, CausalMasks) {
  for (const int64_t key_count : {512, 1024}) {
    for (const bool is_gradient : {false, true}) {
      AttentionProblem problem = {.dtype = DType::kBfloat16,
                                  .geometry = kBlock,
                                  .scale = 0.125,
                                  .is_causal = true,
                                  .is_gradient = is_gradient};
      problem.geometry.key_count = key_count;
      SCOPED_TRACE(Describe(problem));
      EXPECT_OK(MakeCudnnPlan(target_, problem));
    }
  }
}

TEST_F(AttentionPlansTest, TheWorkspaceMayBeWhatScoresTook) {
  AttentionProblem problem = {.dtype = DType::kBfloat16,
                              .geometry = kBlock,
                              .scale = 0.125,
                              .is_gradient = true};
  problem.geometry.query_count = problem.geometry.key_count = 1024;
  ASSERT_OK_AND_ASSIGN(const CudnnPlan plan, MakeCudnnPlan(target_, problem));
  EXPECT_GT(plan.workspace_bytes(), size_t{1} << 30);
}

TEST_F(AttentionPlansTest, OtherShapes) {
  const AttentionGeometry geometries[] = {
      // Lengths that differ and that fill no tile.
      {.batch = 2,
       .heads = 3,
       .query_count = 77,
       .key_count = 45,
       .key_dim = 64,
       .value_dim = 64},
      {.batch = 1,
       .heads = 2,
       .query_count = 100,
       .key_count = 384,
       .key_dim = 128,
       .value_dim = 128},
      // One head, and few features.
      {.batch = 4,
       .heads = 1,
       .query_count = 9,
       .key_count = 9,
       .key_dim = 8,
       .value_dim = 8},
      // The values have another number of features than the keys.
      {.batch = 2,
       .heads = 4,
       .query_count = 128,
       .key_count = 128,
       .key_dim = 64,
       .value_dim = 32}};
  for (const AttentionGeometry& geometry : geometries) {
    for (const bool is_gradient : {false, true}) {
      const AttentionProblem problem = {.dtype = DType::kBfloat16,
                                        .geometry = geometry,
                                        .scale = 0.3,
                                        .is_gradient = is_gradient};
      SCOPED_TRACE(Describe(problem));
      const absl::StatusOr<CudnnPlan> plan = MakeCudnnPlan(target_, problem);
      // A gradient that this version of cuDNN computes incorrectly is refused.
      if (is_gradient && target_.api->version <= 91500 &&
          geometry.key_count % 128 != 0) {
        EXPECT_THAT(plan, StatusIs(absl::StatusCode::kUnimplemented));
      } else {
        EXPECT_OK(plan);
      }
    }
  }
}

TEST_F(AttentionPlansTest, WhatCudnnDoesNotSupportIsRefused) {
  AttentionProblem problem = {.dtype = DType::kFloat32, .geometry = kBlock};
  EXPECT_THAT(MakeCudnnPlan(target_, problem),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("bfloat16 or float16, got float32")));
  problem.dtype = DType::kBfloat16;
  problem.geometry.key_dim = 60;
  EXPECT_THAT(MakeCudnnPlan(target_, problem),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("not a multiple of 8")));
  problem.geometry.key_dim = problem.geometry.value_dim = 1024;
  problem.is_gradient = true;
  EXPECT_THAT(MakeCudnnPlan(target_, problem),
              StatusIs(absl::StatusCode::kUnimplemented));
}

// Returns true if cuDNN has a plan for a fused op.
bool HasPlan(const CudnnTarget& target, const KernelSpec& spec) {
  const bool is_gradient = spec.op == kFusedAttentionGradOp;
  const size_t first = is_gradient ? 1 : 0;
  const size_t bias = is_gradient ? 6 : 3;
  const auto geometry = AttentionGeometry::Of(
      spec.inputs[first], spec.inputs[first + 1], spec.inputs[first + 2],
      spec.inputs.size() > bias ? &spec.inputs[bias] : nullptr);
  EXPECT_OK(geometry);
  const absl::StatusOr<CudnnPlan> plan = MakeCudnnPlan(
      target,
      AttentionProblem{
          .dtype = spec.inputs[first].dtype,
          .geometry = *geometry,
          .scale = spec.attributes.GetOr<double>(kAttentionScaleAttribute, 0),
          .is_causal = spec.attributes.GetOr(kAttentionCausalAttribute, false),
          .is_gradient = is_gradient});
  EXPECT_OK(plan);
  return plan.ok();
}

// Expects that the attention in a training step of `layer`, over sequences of
// 128 positions, becomes fused ops that have plans, without softmax or
// transposition.
void ExpectFused(const CudnnTarget& target, const LayerPtr& layer,
                 size_t input_count) {
  const std::vector<TensorType> batch = {
      {DType::kFloat32, {Shape::kUnknown, 128, 256}},
      {DType::kFloat32, {Shape::kUnknown, 128, 256}}};
  const std::vector<TensorType> arguments = {{DType::kFloat32, {8, 128, 256}},
                                             {DType::kFloat32, {8, 128, 256}}};
  ASSERT_OK_AND_ASSIGN(
      const TracedStep step,
      TraceTrainStep(
          {.layer = layer,
           .outputs = {{.name = "y", .loss = MeanSquaredError({})}},
           .clipping_of = [](const Weight&) { return GradientClipping(); }},
          batch));
  ASSERT_OK_AND_ASSIGN(Graph graph,
                       WithTypes(DropDeadNodes(step.graph, BuiltinOps()),
                                 BuiltinOps(), {arguments}, 0));
  BypassNoOps(&graph, BuiltinOps());
  std::vector<std::string> fused;
  FuseAttention(&graph, BuiltinOps(), [&](const KernelSpec& spec) {
    fused.push_back(spec.op);
    EXPECT_EQ(spec.attributes.GetOr<double>(kAttentionScaleAttribute, 0),
              0.125);
    const bool is_gradient = spec.op == kFusedAttentionGradOp;
    EXPECT_EQ(spec.inputs.size(), input_count + (is_gradient ? 3 : 0));
    return HasPlan(target, spec);
  });
  EXPECT_THAT(fused, ElementsAre(kFusedAttentionOp, kFusedAttentionGradOp));
  for (const Node& node : graph.nodes) {
    EXPECT_FALSE(node.op == "Transpose" ||
                 absl::StrContains(node.op, "Softmax"))
        << node.op << " " << node.name;
  }
}

TEST_F(AttentionPlansTest, AttentionOfALayerIsFusedInATrainingStep) {
  const DTypePolicyScope scope(kMixedBfloat16Policy);
  const LayerOutput inputs = Input({128, 256});
  ExpectFused(target_,
              Functional(inputs, MultiHeadAttention(4, 64)({inputs, inputs})),
              /*input_count=*/3);
}

TEST_F(AttentionPlansTest, MasksAndSharedHeadsAreFused) {
  const DTypePolicyScope scope(kMixedBfloat16Policy);
  const LayerOutput inputs = Input({128, 256});
  const LayerOutput masked = Masking()(inputs);
  ExpectFused(
      target_,
      Functional(inputs, MultiHeadAttention(4, 64, {.use_causal_mask = true})(
                             {inputs, inputs})),
      /*input_count=*/3);
  ExpectFused(target_,
              Functional(inputs, MultiHeadAttention(4, 64)({masked, masked})),
              /*input_count=*/4);
  ExpectFused(target_,
              Functional(inputs, GroupQueryAttention(64, 4, 2,
                                                     {.use_causal_mask = true})(
                                     {masked, masked})),
              /*input_count=*/4);
}

}  // namespace
}  // namespace muster
