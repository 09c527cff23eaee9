#include "common/compute/runtime/graph_rewrites.h"

#include <string>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/runtime/testing/test_ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

class GraphRewritesTest : public testing::Test {
 protected:
  GraphRewritesTest()
      : builder_(&TestOps(), "test"),
        x_(builder_.Parameter("x", {DType::kFloat32, {2, 2}})) {}

  Graph Build() {
    auto graph = std::move(builder_).Build();
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  static std::vector<std::string> Ops(const Graph& graph) {
    std::vector<std::string> ops;
    for (const Node& node : graph.nodes) ops.push_back(node.op);
    return ops;
  }

  GraphBuilder builder_;
  Value x_;
};

TEST_F(GraphRewritesTest, DropsDeadNodes) {
  const Value used = builder_.Op("Relu", {x_});
  builder_.Op("Mul", {builder_.Op("Fail", {x_}), used});
  builder_.RunAfter(builder_.Op("Fail", {x_}));
  builder_.AddResult(builder_.Op("Add", {used, x_}));
  builder_.Parameter("unused", {DType::kFloat32, {7}});

  const Graph graph = DropDeadNodes(Build(), TestOps());
  EXPECT_THAT(Ops(graph), ElementsAre("Parameter", "Relu", "Add", "Parameter"));
  EXPECT_EQ(graph.parameters.size(), 2u);
  EXPECT_OK(VerifyGraph(graph, TestOps()));
}

TEST_F(GraphRewritesTest, AppendedNodesMoveBeforeTheirReaders) {
  const Value a = builder_.Op("Relu", {x_});
  builder_.AddResult(builder_.Op("Add", {a, x_}));
  Graph graph = Build();
  const auto append = [&](const std::string& op, NodeOutput input) {
    Node node = graph.nodes[1];
    node.op = op;
    node.name = op;
    node.inputs = {input};
    graph.nodes.push_back(node);
    return NodeOutput{static_cast<int>(graph.nodes.size()) - 1, 0};
  };
  // The sum reads a chain of two nodes that follow it.
  const NodeOutput first = append("Fail", graph.nodes[2].inputs[0]);
  graph.nodes[2].inputs[0] = append("Identity", first);

  SortNodes(&graph);
  EXPECT_THAT(Ops(graph),
              ElementsAre("Parameter", "Relu", "Fail", "Identity", "Add"));
  EXPECT_EQ(graph.nodes[4].inputs, (std::vector<NodeOutput>{{3, 0}, {0, 0}}));
  EXPECT_EQ(graph.results, (std::vector<NodeOutput>{{4, 0}}));
}

TEST_F(GraphRewritesTest, NodesThatDependOnTypesBecomeConstants) {
  const auto node = [](const std::string& op, const TensorType& type) {
    Node made;
    made.op = op;
    made.inputs = {{0, 0}};
    made.outputs = {type};
    return made;
  };
  Graph graph;
  graph.nodes = {node("Parameter", {DType::kFloat32, {2, 3, 5}}),
                 node("CountAlong", {DType::kFloat32, {}}),
                 node("OnesLike", {DType::kFloat64, {2}}),
                 node("OnesLike", {DType::kFloat32, {1 << 20}}),
                 node("PadLike", {DType::kFloat32, {4, 3, 9}})};
  graph.nodes[0].inputs = {};
  graph.nodes[1].attributes = {{"axes", std::vector<int64_t>{0, -1}}};
  graph.nodes[4].inputs.push_back({3, 0});
  graph.nodes[4].attributes = {{"begin", std::vector<int64_t>{1, 0, 4}}};
  FoldTypes(&graph);
  EXPECT_THAT(Ops(graph), ElementsAre("Parameter", "Constant", "Constant",
                                      "OnesLike", "Pad"));
  const auto value = [&](int index) {
    return graph.nodes[index].attributes.GetOr<Tensor>("value", Tensor());
  };
  EXPECT_EQ(value(1).scalar<float>(), 10);
  EXPECT_THAT(value(2).flat<double>(), ElementsAre(1, 1));
  EXPECT_TRUE(graph.nodes[1].inputs.empty());
  EXPECT_EQ(graph.nodes[4].inputs, (std::vector<NodeOutput>{{0, 0}}));
  EXPECT_EQ(
      graph.nodes[4].attributes.GetOr<std::vector<int64_t>>("paddings", {}),
      (std::vector<int64_t>{1, 1, 0, 0, 4, 0}));
}

TEST_F(GraphRewritesTest, UpdatesMoveToWhereTheirValueIsComputed) {
  const Value w = ReadVariableForTest(builder_, "w", {2, 2});
  const Value gradient = builder_.Op("Mul", {x_, x_});
  const Value last_use = builder_.Op("MatMul", {x_, w});
  builder_.AddResult(builder_.Op("Relu", {last_use}));
  UpdateVariableForTest("ApplyGradient", "w", {gradient});

  const Graph graph = ApplyUpdatesEarly(Build(), TestOps());
  EXPECT_THAT(Ops(graph), ElementsAre("Parameter", "ReadVariable", "Mul",
                                      "MatMul", "ApplyGradient", "Relu"));
  EXPECT_OK(VerifyGraph(graph, TestOps()));
}

TEST_F(GraphRewritesTest, UpdatesRespectControlEdges) {
  UpdateVariableForTest("AssignVariable", "w", {x_});
  const Value w = ReadVariableForTest(builder_, "w", {2, 2});
  const Value doubled = builder_.Op("Add", {w, w});
  UpdateVariableForTest("AssignVariable", "w", {x_});
  builder_.AddResult(ReadVariableForTest(builder_, "w", {2, 2}));
  builder_.AddResult(doubled);

  const Graph graph = ApplyUpdatesEarly(Build(), TestOps());
  EXPECT_THAT(Ops(graph),
              ElementsAre("Parameter", "AssignVariable", "ReadVariable", "Add",
                          "AssignVariable", "ReadVariable"));
}

TEST_F(GraphRewritesTest, BypassesNoOps) {
  const Value same = builder_.Op("Identity", {builder_.Op("Identity", {x_})});
  const Value product = builder_.Op("MatMul", {same, x_});
  const Value sum = builder_.Op("SumLike", {x_, product});
  builder_.AddResult(builder_.Op("Relu", {sum}));
  builder_.AddResult(same);

  Graph graph = Build();
  BypassNoOps(&graph, TestOps());
  graph = DropDeadNodes(graph, TestOps());
  EXPECT_THAT(Ops(graph), ElementsAre("Parameter", "Relu"));
  EXPECT_EQ(graph.results[1], (NodeOutput{0, 0}));
}

TEST_F(GraphRewritesTest, ReshapeLikeForgetsWhatItIsLike) {
  const Value flat =
      builder_.Op("Reshape", {x_}, {{"shape", std::vector<int64_t>{4}}});
  const Value product = builder_.Op("MatMul", {x_, x_});
  builder_.AddResult(builder_.Op("ReshapeLike", {flat, product}));

  Graph graph = Build();
  BypassNoOps(&graph, TestOps());
  graph = DropDeadNodes(graph, TestOps());
  EXPECT_THAT(Ops(graph), ElementsAre("Parameter", "Reshape", "Reshape"));
  EXPECT_OK(VerifyGraph(graph, TestOps()));
}

}  // namespace
}  // namespace muster
