#include "common/compute/runtime/attention_fusion.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/attention.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

constexpr DType kBf16 = DType::kBfloat16;
constexpr double kScale = 0.125;

// Attention with heads as MultiHeadAttention traces it, and the nodes that a
// test adds.
class AttentionFusionTest : public ::testing::Test {
 protected:
  AttentionFusionTest()
      : builder_(&BuiltinOps(), "test"),
        q_(Parameter("q", {2, 5, 3, 64})),
        k_(Parameter("k", {2, 7, 3, 64})),
        v_(Parameter("v", {2, 7, 3, 32})) {}

  Value Parameter(const std::string& name, const Shape& shape) {
    return builder_.Parameter(name, {kBf16, shape});
  }

  static Value Swap(Value x) { return Transpose(x, {0, 2, 1, 3}); }

  Value Scores() {
    return MatMul(Swap(q_) * kScale, Swap(k_), {.transpose_b = true});
  }

  Value Mask(const Shape& shape) {
    return builder_.Parameter(absl::StrCat("mask", mask_count_++),
                              {DType::kBool, shape});
  }

  static Value Masked(Value scores, Value mask, double fill) {
    return Select(mask, scores, ScalarLike(scores, fill));
  }

  Value Output(Value p) { return Swap(MatMul(p, Swap(v_))); }

  // Adds the gradients of the sum of `y` times a parameter.
  void AddGradients(Value y, const std::vector<Value>& sources) {
    const Value weights =
        builder_.Parameter(absl::StrCat("weights", weight_count_++), y.type());
    const std::vector<Gradient> gradients =
        Gradients(Sum(y * weights), sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      builder_.AddResult(DenseGradient(gradients[i], sources[i]));
    }
  }

  Graph Fuse(const std::function<bool(const KernelSpec&)>& is_supported =
                 [](const KernelSpec&) { return true; }) {
    auto built = std::move(builder_).Build();
    EXPECT_OK(built);
    Graph graph = *std::move(built);
    BypassNoOps(&graph, BuiltinOps());
    FuseAttention(&graph, BuiltinOps(), is_supported);
    return graph;
  }

  static std::vector<std::string> Ops(const Graph& graph) {
    std::vector<std::string> ops;
    for (const Node& node : graph.nodes) {
      if (node.op != kParameterOp) ops.push_back(node.op);
    }
    return ops;
  }

  static const Node& Find(const Graph& graph, absl::string_view op) {
    const auto found =
        std::find_if(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return node.op == op; });
    static const Node* const kMissing = new Node();
    EXPECT_NE(found, graph.nodes.end()) << graph.ToString();
    return found == graph.nodes.end() ? *kMissing : *found;
  }

  GraphBuilder builder_;
  Value q_, k_, v_;
  int mask_count_ = 0;
  int weight_count_ = 0;
};

TEST_F(AttentionFusionTest, AttentionOfAnInferenceIsOneOp) {
  builder_.AddResult(Output(Softmax(Scores())));
  const Graph graph = Fuse();
  ASSERT_THAT(Ops(graph), ElementsAre(kFusedAttentionOp));
  const Node& fused = graph.nodes.back();
  EXPECT_EQ(fused.inputs, (std::vector<NodeOutput>{{0, 0}, {1, 0}, {2, 0}}));
  EXPECT_EQ(fused.attributes.GetOr<double>(kAttentionScaleAttribute, 0),
            kScale);
  EXPECT_THAT(fused.outputs,
              ElementsAre(TensorType{kBf16, {2, 5, 3, 32}},
                          TensorType{DType::kFloat32, {2, 3, 5}}));
}

TEST_F(AttentionFusionTest, AttentionAndItsGradientAreTwoOps) {
  const Value y = Output(Softmax(Scores()));
  builder_.AddResult(y);
  AddGradients(y, {q_, k_, v_});
  const Graph graph = Fuse();
  const Node& forward = Find(graph, kFusedAttentionOp);
  const auto output = static_cast<int>(&forward - graph.nodes.data());
  const Node& gradient = Find(graph, kFusedAttentionGradOp);
  const auto position = static_cast<int>(&gradient - graph.nodes.data());
  for (const char* op : {"Transpose", "Softmax", "SoftmaxGrad", "MatMul"}) {
    EXPECT_THAT(Ops(graph), Not(Contains(op)));
  }
  ASSERT_EQ(gradient.inputs.size(), 6u);
  EXPECT_EQ(graph.TypeOf(gradient.inputs[0]),
            (TensorType{kBf16, {2, 5, 3, 32}}));
  EXPECT_EQ(std::vector<NodeOutput>(gradient.inputs.begin() + 1,
                                    gradient.inputs.end()),
            (std::vector<NodeOutput>{
                {0, 0}, {1, 0}, {2, 0}, {output, 0}, {output, 1}}));
  EXPECT_EQ(gradient.attributes.GetOr<double>(kAttentionScaleAttribute, 0),
            kScale);
  EXPECT_EQ(graph.results,
            (std::vector<NodeOutput>{
                {output, 0}, {position, 0}, {position, 1}, {position, 2}}));
  EXPECT_THAT(gradient.outputs, ElementsAre(TensorType{kBf16, {2, 5, 3, 64}},
                                            TensorType{kBf16, {2, 7, 3, 64}},
                                            TensorType{kBf16, {2, 7, 3, 32}}));
}

TEST_F(AttentionFusionTest, OperandsWithoutHeadsAndScaleAreFused) {
  const Value q = Parameter("q3", {2, 5, 16});
  const Value k = Parameter("k3", {2, 7, 16});
  const Value v = Parameter("v3", {2, 7, 8});
  const Value y = MatMul(Softmax(MatMul(q, k, {.transpose_b = true})), v);
  AddGradients(y, {q, k, v});
  const Graph graph = Fuse();
  EXPECT_THAT(Ops(graph), Not(Contains("MatMul")));
  const Node& gradient = Find(graph, kFusedAttentionGradOp);
  const auto position = static_cast<int>(&gradient - graph.nodes.data());
  EXPECT_EQ(gradient.attributes.GetOr<double>(kAttentionScaleAttribute, 0), 1);
  EXPECT_EQ(graph.results, (std::vector<NodeOutput>{
                               {position, 0}, {position, 1}, {position, 2}}));
}

TEST_F(AttentionFusionTest, ASoftmaxInFloat32IsFused) {
  const Value p = Cast(Softmax(Cast(Scores(), DType::kFloat32)), kBf16);
  const Value y = Output(p);
  builder_.AddResult(y);
  AddGradients(y, {q_, k_, v_});
  const std::vector<std::string> ops = Ops(Fuse());
  EXPECT_THAT(ops, Contains(kFusedAttentionGradOp));
  for (const char* op : {"Cast", "Softmax", "SoftmaxGrad", "MatMul"}) {
    EXPECT_THAT(ops, Not(Contains(op)));
  }
}

TEST_F(AttentionFusionTest, ProbabilitiesInFloat32ThatAreAResultStay) {
  const Value wide = Softmax(Cast(Scores(), DType::kFloat32));
  builder_.AddResult(Output(Cast(wide, kBf16)));
  builder_.AddResult(wide);
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, OneValueMayBeKeyAndValue) {
  const Value q = Parameter("q3", {2, 5, 16});
  const Value k = Parameter("k3", {2, 7, 16});
  AddGradients(MatMul(Softmax(MatMul(q, k, {.transpose_b = true})), k), {q, k});
  const Graph graph = Fuse();
  EXPECT_THAT(Ops(graph), Not(Contains("MatMul")));
  // The gradients of key and value are added.
  EXPECT_THAT(Ops(graph), Contains(kFusedAttentionGradOp));
}

TEST_F(AttentionFusionTest, StackedLayersAreFused) {
  const auto attend = [](Value x) {
    const Value scores =
        MatMul(Swap(x) * kScale, Swap(x), {.transpose_b = true});
    return Swap(MatMul(Softmax(scores), Swap(x)));
  };
  AddGradients(attend(attend(q_)), {q_});
  const std::vector<std::string> ops = Ops(Fuse());
  EXPECT_EQ(std::count(ops.begin(), ops.end(), kFusedAttentionOp), 2);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), kFusedAttentionGradOp), 2);
  EXPECT_THAT(ops, Not(Contains("MatMul")));
}

TEST_F(AttentionFusionTest, UnsupportedAttentionIsNotFused) {
  builder_.AddResult(Output(Softmax(Scores())));
  EXPECT_THAT(Ops(Fuse([](const KernelSpec&) { return false; })),
              Contains("Softmax"));
}

TEST_F(AttentionFusionTest, UnsupportedGradientPreventsFusion) {
  const Value y = Output(Softmax(Scores()));
  builder_.AddResult(y);
  AddGradients(y, {q_, k_, v_});
  const Graph graph = Fuse(
      [](const KernelSpec& spec) { return spec.op != kFusedAttentionGradOp; });
  EXPECT_THAT(Ops(graph), Not(Contains(kFusedAttentionOp)));
  EXPECT_EQ(Find(graph, "Transpose").outputs.size(), 1u);
}

TEST_F(AttentionFusionTest, ProbabilitiesThatAreAResultStay) {
  const Value p = Softmax(Scores());
  builder_.AddResult(Output(p));
  builder_.AddResult(p);
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, ProbabilitiesThatAreAResultOfATrainingStepStay) {
  const Value p = Softmax(Scores());
  const Value y = Output(p);
  AddGradients(y, {q_, k_, v_});
  builder_.AddResult(p);
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, ScoresThatOthersReadStay) {
  const Value scores = Scores();
  builder_.AddResult(Output(Softmax(scores)));
  builder_.AddResult(Sum(scores));
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, AMaskBecomesABias) {
  const Value y =
      Output(Softmax(Masked(Scores(), Mask({2, 1, 1, 7}), /*fill=*/-1e9)));
  builder_.AddResult(y);
  AddGradients(y, {q_, k_, v_});
  const Graph graph = Fuse();
  for (const char* op : {"Softmax", "SoftmaxGrad", "MatMul"}) {
    EXPECT_THAT(Ops(graph), Not(Contains(op)));
  }
  const Node& forward = Find(graph, kFusedAttentionOp);
  const Node& gradient = Find(graph, kFusedAttentionGradOp);
  ASSERT_EQ(forward.inputs.size(), 4u);
  ASSERT_EQ(gradient.inputs.size(), 7u);
  EXPECT_EQ(graph.TypeOf(forward.inputs[3]), (TensorType{kBf16, {2, 1, 5, 7}}));
  EXPECT_EQ(gradient.inputs[6], forward.inputs[3]);
  // A Select clears queries without a key, and another one their gradient.
  EXPECT_EQ(graph.nodes[forward.inputs[0].node].op, "Select");
  EXPECT_EQ(gradient.inputs[1], forward.inputs[0]);
  const Node& dq = graph.nodes[graph.results[1].node];
  EXPECT_EQ(dq.op, "Select");
  EXPECT_EQ(graph.TypeOf(dq.inputs[0]),
            (TensorType{DType::kBool, {2, 5, 1, 1}}));
}

// A constant mask [5, 7].
Value ConstantMask(GraphBuilder* builder,
                   const std::function<bool(int64_t, int64_t)>& is_kept) {
  Tensor mask(DType::kBool, {5, 7});
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      mask.mutable_flat<bool>()[7 * i + j] = is_kept(i, j);
    }
  }
  return builder->Constant(mask);
}

TEST_F(AttentionFusionTest, ACausalMaskIsAnAttribute) {
  const Value mask =
      ConstantMask(&builder_, [](int64_t i, int64_t j) { return j <= i; });
  AddGradients(Output(Softmax(Masked(Scores(), mask, -1e9))), {q_, k_, v_});
  const Graph graph = Fuse();
  const Node& forward = Find(graph, kFusedAttentionOp);
  const Node& gradient = Find(graph, kFusedAttentionGradOp);
  EXPECT_EQ(forward.inputs.size(), 3u);
  EXPECT_EQ(gradient.inputs.size(), 6u);
  EXPECT_TRUE(forward.attributes.GetOr(kAttentionCausalAttribute, false));
  EXPECT_TRUE(gradient.attributes.GetOr(kAttentionCausalAttribute, false));
  EXPECT_THAT(Ops(graph), Not(Contains("Select")));
}

TEST_F(AttentionFusionTest, AConstantMaskThatLeavesEachQueryAKeyIsABiasOnly) {
  const std::function<bool(int64_t, int64_t)> masks[] = {
      [](int64_t i, int64_t j) { return j < i || j == 0; },
      [](int64_t i, int64_t j) { return j <= i + 1; }};
  for (const auto& is_kept : masks) {
    const Value mask = ConstantMask(&builder_, is_kept);
    AddGradients(Output(Softmax(Masked(Scores(), mask, -1e9))), {q_, k_, v_});
  }
  const Graph graph = Fuse();
  for (const Node& node : graph.nodes) {
    if (node.op != kFusedAttentionOp) continue;
    ASSERT_EQ(node.inputs.size(), 4u);
    EXPECT_EQ(graph.TypeOf(node.inputs[3]), (TensorType{kBf16, {1, 1, 5, 7}}));
    EXPECT_EQ(node.inputs[0], (NodeOutput{0, 0}));
  }
  ASSERT_THAT(graph.results, SizeIs(6));
  EXPECT_EQ(graph.nodes[graph.results[0].node].op, kFusedAttentionGradOp);
  EXPECT_EQ(graph.nodes[graph.results[3].node].op, kFusedAttentionGradOp);
}

TEST_F(AttentionFusionTest, AConstantMaskThatLeavesAQueryNoKeySelectsToo) {
  const Value mask =
      ConstantMask(&builder_, [](int64_t i, int64_t j) { return j < i; });
  AddGradients(Output(Softmax(Masked(Scores(), mask, -1e9))), {q_, k_, v_});
  const Graph graph = Fuse();
  EXPECT_EQ(graph.nodes[graph.results[0].node].op, "Select");
}

TEST_F(AttentionFusionTest, AMaskOfOperandsWithoutHeadsIsFused) {
  const Value q = Parameter("q3", {2, 5, 16});
  const Value k = Parameter("k3", {2, 7, 16});
  const Value v = Parameter("v3", {2, 7, 8});
  const Value scores = MatMul(q, k, {.transpose_b = true});
  AddGradients(MatMul(Softmax(Masked(scores, Mask({2, 5, 7}), -1e9)), v),
               {q, k, v});
  const Graph graph = Fuse();
  EXPECT_THAT(Ops(graph), Not(Contains("MatMul")));
  const Node& forward = Find(graph, kFusedAttentionOp);
  ASSERT_EQ(forward.inputs.size(), 4u);
  EXPECT_EQ(graph.TypeOf(forward.inputs[3]), (TensorType{kBf16, {2, 1, 5, 7}}));
  const Node& query = graph.nodes[forward.inputs[0].node];
  EXPECT_EQ(graph.TypeOf(query.inputs[0]),
            (TensorType{DType::kBool, {2, 5, 1}}));
}

TEST_F(AttentionFusionTest, SelectionsThatAreNoMasksStay) {
  const Value scores = Scores();
  builder_.AddResult(Output(Softmax(Masked(scores, Mask({5, 7}), /*fill=*/0))));
  builder_.AddResult(
      Output(Softmax(Select(Mask({5, 7}), ScalarLike(scores, -1e9), scores))));
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, AMaskOfTheProbabilitiesStays) {
  const Value mask = Mask({5, 7});
  const Value p = Softmax(Masked(Scores(), mask, -1e9));
  AddGradients(Output(Masked(p, mask, 0)), {q_, k_, v_});
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, DroppedProbabilitiesStay) {
  const Value kept = builder_.Parameter("kept", {kBf16, {2, 3, 5, 7}});
  const Value y = Output(Softmax(Scores()) * kept);
  AddGradients(y, {q_, k_, v_});
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, SomeOfTheGradientsOnlyStay) {
  AddGradients(Output(Softmax(Scores())), {q_, k_});
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

TEST_F(AttentionFusionTest, AScaleThatIsNoConstantIsLeftBeforeTheAttention) {
  const Value scale = builder_.Parameter("scale", {kBf16, {}});
  const Value scores =
      MatMul(Swap(q_ * scale), Swap(k_), {.transpose_b = true});
  builder_.AddResult(Output(Softmax(scores)));
  EXPECT_THAT(Ops(Fuse()), ElementsAre("Mul", kFusedAttentionOp));
}

TEST_F(AttentionFusionTest, OtherOrdersOfAxesStay) {
  const Value scores =
      MatMul(Swap(q_) * kScale, Swap(k_), {.transpose_b = true});
  builder_.AddResult(
      Transpose(MatMul(Softmax(scores), Swap(v_)), {2, 0, 1, 3}));
  EXPECT_THAT(Ops(Fuse()), Not(Contains(kFusedAttentionOp)));
}

}  // namespace
}  // namespace muster
