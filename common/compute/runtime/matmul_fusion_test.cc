#include "common/compute/runtime/matmul_fusion.h"

#include <string>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class MatMulFusionTest : public testing::Test {
 protected:
  MatMulFusionTest()
      : builder_(&BuiltinOps(), "test"),
        a_(Parameter({4, 3})),
        b_(Parameter({3, 5})),
        bias_(Parameter({5})),
        product_(builder_.Op("MatMul", {a_, b_})) {}

  Value Parameter(const Shape& shape) {
    return builder_.Parameter("p", {DType::kFloat32, shape});
  }

  Graph Fuse(bool is_supported = true) {
    auto built = std::move(builder_).Build();
    EXPECT_OK(built);
    Graph graph = *std::move(built);
    ReadReluOutputs(&graph, BuiltinOps());
    FuseMatMulBias(&graph, BuiltinOps(),
                   [=](const KernelSpec&) { return is_supported; });
    return DropDeadNodes(graph, BuiltinOps());
  }

  static std::vector<std::string> Ops(const Graph& graph) {
    std::vector<std::string> ops;
    for (const Node& node : graph.nodes) {
      if (node.op != kParameterOp) ops.push_back(node.op);
    }
    return ops;
  }

  GraphBuilder builder_;
  Value a_, b_, bias_, product_;
};

TEST_F(MatMulFusionTest, FusesProductBiasAndActivation) {
  builder_.AddResult(
      builder_.Op("Relu", {builder_.Op("Add", {product_, bias_})}));
  const Graph graph = Fuse();
  EXPECT_THAT(Ops(graph), ElementsAre("FusedMatMulBias"));
  const Node& fused = graph.nodes.back();
  EXPECT_EQ(fused.inputs, (std::vector<NodeOutput>{{0, 0}, {1, 0}, {2, 0}}));
  EXPECT_EQ(fused.attributes.GetOr<std::string>("activation", ""), "Relu");
  EXPECT_EQ(fused.name, "Relu");
}

TEST_F(MatMulFusionTest, TheBiasMayStandOnTheLeft) {
  builder_.AddResult(builder_.Op("Add", {bias_, product_}));
  const Graph graph = Fuse();
  EXPECT_THAT(Ops(graph), ElementsAre("FusedMatMulBias"));
  EXPECT_EQ(graph.nodes.back().inputs[2], (NodeOutput{2, 0}));
}

TEST_F(MatMulFusionTest, AProductThatOthersReadStays) {
  builder_.AddResult(builder_.Op("Add", {product_, bias_}));
  builder_.AddResult(builder_.Op("Relu", {product_}));
  EXPECT_THAT(Ops(Fuse()), Not(Contains("FusedMatMulBias")));
}

TEST_F(MatMulFusionTest, AProductThatIsAResultStays) {
  builder_.AddResult(builder_.Op("Add", {product_, bias_}));
  builder_.AddResult(product_);
  EXPECT_THAT(Ops(Fuse()), Not(Contains("FusedMatMulBias")));
}

TEST_F(MatMulFusionTest, ASumWithOtherReadersIsNotFusedWithItsActivation) {
  const Value sum = builder_.Op("Add", {product_, bias_});
  builder_.AddResult(builder_.Op("Relu", {sum}));
  builder_.AddResult(sum);
  EXPECT_THAT(Ops(Fuse()), ElementsAre("FusedMatMulBias", "Relu"));
}

TEST_F(MatMulFusionTest, OnlyTheFirstActivationIsFused) {
  const Value sum = builder_.Op("Add", {product_, bias_});
  builder_.AddResult(builder_.Op("Relu", {builder_.Op("Relu", {sum})}));
  EXPECT_THAT(Ops(Fuse()), ElementsAre("FusedMatMulBias", "Relu"));
}

TEST_F(MatMulFusionTest, TheGradientOfAReluDoesNotPreventFusion) {
  const Value sum = builder_.Op("Add", {product_, bias_});
  const Value relu = builder_.Op("Relu", {sum});
  builder_.AddResult(builder_.Op("ReluGrad", {relu, sum}));
  const Graph graph = Fuse();
  EXPECT_THAT(Ops(graph), ElementsAre("FusedMatMulBias", "ReluGrad"));
  EXPECT_EQ(graph.nodes.back().inputs[1], graph.nodes.back().inputs[0]);
}

TEST_F(MatMulFusionTest, OnlyARowIsABias) {
  builder_.AddResult(builder_.Op("Add", {product_, Parameter({4, 1})}));
  builder_.AddResult(
      builder_.Op("Add", {builder_.Op("MatMul", {a_, b_}), Parameter({4, 5})}));
  builder_.AddResult(
      builder_.Op("Add", {builder_.Op("MatMul", {a_, b_}), Parameter({})}));
  EXPECT_THAT(Ops(Fuse()), Not(Contains("FusedMatMulBias")));
}

TEST_F(MatMulFusionTest, ABiasThatWidensTheProductIsNone) {
  const Value column = builder_.Op("MatMul", {a_, Parameter({3, 1})});
  builder_.AddResult(builder_.Op("Add", {column, bias_}));
  EXPECT_THAT(Ops(Fuse()), Not(Contains("FusedMatMulBias")));
}

TEST_F(MatMulFusionTest, UnsupportedOpsAreNotFused) {
  builder_.AddResult(builder_.Op("Add", {product_, bias_}));
  EXPECT_THAT(Ops(Fuse(/*is_supported=*/false)), ElementsAre("MatMul", "Add"));
}

}  // namespace
}  // namespace muster
