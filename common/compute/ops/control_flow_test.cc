#include "common/compute/ops/control_flow.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<Value>;

constexpr DType kF32 = DType::kFloat32;

Tensor Vector(std::initializer_list<float> values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())},
                                   values);
}

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

// Sums the rows, and returns the sums so far.
ScanStep CumulativeSum(Value init, Value x, ScanOptions options = {}) {
  return Scan(
      {init}, {x},
      [](const ScanStep& step) -> ScanStep {
        const Value sum = step.carry[0] + step.rows[0];
        return {.carry = {sum}, .rows = {sum}};
      },
      options);
}

TEST(ControlFlowTest, CondRunsOneBranch) {
  for (const bool predicate : {false, true}) {
    const auto trace = [](const Values& x) {
      return Cond(
          x[0],
          [&]() -> Values {
            return {Assert(x[1], Equal(x[1], 3.0), "then"), x[1]};
          },
          [&]() -> Values {
            return {Assert(x[1] * 2.0, Equal(x[1], 5.0), "else"), x[2]};
          });
    };
    const Tensor x = Tensor::Scalar<float>(predicate ? 3 : 5);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                         EvaluateAll(trace, {Tensor::Scalar(predicate), x,
                                             Tensor::Scalar<float>(7)}));
    EXPECT_EQ(results[0].scalar<float>(), predicate ? 3 : 10);
    EXPECT_EQ(results[1].scalar<float>(), predicate ? 3 : 7);
  }
}

TEST(ControlFlowTest, ScanStacksRowsInBothDirections) {
  const auto trace = [](const Values& x) -> Values {
    const ScanStep up = CumulativeSum(x[0], x[1]);
    const ScanStep down = CumulativeSum(x[0], x[1], {.reverse = true});
    return {up.carry[0], up.rows[0], down.rows[0]};
  };
  for (const bool unknown_extents : {false, true}) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> results,
        EvaluateAll(trace, {Tensor::Scalar<float>(1), Vector({2, 3, 4})},
                    {.unknown_extents = unknown_extents, .run = {}}));
    EXPECT_EQ(results[0].scalar<float>(), 10);
    EXPECT_THAT(Floats(results[1]), ElementsAre(3, 6, 10));
    EXPECT_THAT(Floats(results[2]), ElementsAre(10, 8, 5));
  }
}

TEST(ControlFlowTest, ScanOfNothingReturnsTheFirstCarry) {
  const auto trace = [](const Values& x) -> Values {
    const ScanStep last = CumulativeSum(x[0], x[1]);
    return {last.carry[0], last.rows[0]};
  };
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      EvaluateAll(trace, {Tensor::Scalar<float>(1), Vector({})}));
  EXPECT_EQ(results[0].scalar<float>(), 1);
  EXPECT_EQ(results[1].shape(), Shape({0}));
}

// Each carry is the previous value of the other carry, or a previous row.
TEST(ControlFlowTest, ScanMayPassItsCarriesAndRowsOn) {
  const auto trace = [](const Values& x) -> Values {
    const ScanStep last =
        Scan({x[0], x[1], x[0]}, {x[2]}, [](const ScanStep& step) -> ScanStep {
          return {.carry = {step.carry[1], step.carry[0], step.rows[0]},
                  .rows = {step.carry[0], step.carry[2]}};
        });
    return {last.carry[0], last.carry[1], last.carry[2], last.rows[0],
            last.rows[1]};
  };
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      EvaluateAll(trace, {Tensor::Scalar<float>(1), Tensor::Scalar<float>(2),
                          Vector({5, 6, 7})}));
  EXPECT_EQ(results[0].scalar<float>(), 2);
  EXPECT_EQ(results[1].scalar<float>(), 1);
  EXPECT_EQ(results[2].scalar<float>(), 7);
  EXPECT_THAT(Floats(results[3]), ElementsAre(1, 2, 1));
  EXPECT_THAT(Floats(results[4]), ElementsAre(1, 5, 6));
}

// Collatz: the condition depends on the data.
TEST(ControlFlowTest, WhileEndsByItsConditionOrItsLimit) {
  const auto trace_with = [](int64_t limit) {
    return [limit](const Values& x) {
      const Value zero = x[0].builder()->Constant(Tensor::Scalar<int64_t>(0));
      return While(
          {x[0], zero}, [](const Values& carry) { return carry[0] > 1; },
          [](const Values& carry) -> Values {
            const Values next = Cond(
                Equal(Mod(carry[0], ScalarLike(carry[0], 2)), 0),
                [&]() -> Values { return {carry[0] / 2}; },
                [&]() -> Values { return {carry[0] * 3 + 1}; });
            return {next[0], carry[1] + 1};
          },
          {.maximum_iterations = limit});
    };
  };
  for (const auto& [limit, count] : {std::pair<int64_t, int64_t>{-1, 111},
                                     {1000, 111},
                                     {100, 100},
                                     {0, 0}}) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> results,
        EvaluateAll(trace_with(limit), {Tensor::Scalar<int64_t>(27)}));
    EXPECT_EQ(results[1].scalar<int64_t>(), count);
  }
}

// Values that the body reads without inputs are read by the enclosing graph.
TEST(ControlFlowTest, BodiesReadVariablesAndTheSeedOutside) {
  const VariableHandle w = {"w", {kF32, {2}}};
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {kF32, {3, 2}});
  const ScanStep last = Scan({}, {x}, [&](const ScanStep& step) -> ScanStep {
    const Value noise = RandomUniformLike(StepSeed(builder), step.rows[0]);
    return {.carry = {},
            .rows = {step.rows[0] * ReadVariable(builder, w), noise}};
  });
  for (const Value& row : last.rows) builder.AddResult(row);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK(VerifyGraph(graph, BuiltinOps()));
  EXPECT_THAT(graph.ToString(), HasSubstr("\n  %1 = StepSeed"));
  EXPECT_THAT(graph.ToString(), HasSubstr("\n  %2 = ReadVariable"));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(graph, {Tensor::Full(kF32, {3, 2}, 2)},
                {.step_seed = 3, .variables = {{"w", Vector({5, 7})}}}));
  EXPECT_THAT(Floats(results[0]), ElementsAre(10, 14, 10, 14, 10, 14));
  EXPECT_NE(Floats(results[1])[0], 0);
}

TEST(ControlFlowTest, TypesMustNotChangeFromIterationToIteration) {
  const auto trace = [](const Values& x) {
    return Scan({x[0]}, {x[1]},
                [](const ScanStep& step) -> ScanStep {
                  return {.carry = {Concat({step.carry[0], step.rows[0]}, 0)},
                          .rows = {}};
                })
        .carry;
  };
  EXPECT_THAT(
      EvaluateAll(trace, {Vector({1}), Tensor::Zeros(kF32, {2, 3})}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Scan \"Scan\" (float32[1], float32[2,3]): carry 0 "
                         "is float32[1], but the body returns float32[4]")));
}

TEST(ControlFlowTest, BodiesHaveNoEffects) {
  const auto trace = [](const Values& x) {
    return Cond(
        x[0],
        [&]() -> Values {
          AssignVariable({"w", {kF32, {}}}, x[1]);
          return {x[1]};
        },
        [&]() -> Values { return {x[1]}; });
  };
  EXPECT_THAT(
      EvaluateAll(trace, {Tensor::Scalar(true), Tensor::Scalar<float>(1)}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("AssignVariable \"AssignVariable\" cannot be part of "
                         "a branch or of the body of a loop")));
}

TEST(ControlFlowTest, ReportsTheFirstErrorOfABody) {
  const auto trace = [](const Values& x) {
    return CumulativeSum(x[0], MatMul(x[1], x[1])).rows;
  };
  EXPECT_THAT(EvaluateAll(trace, {Vector({1}), Vector({2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("MatMul \"MatMul\"")));
}

TEST(ControlFlowTest, ValuesOfABodyCannotBeUsedOutside) {
  const auto trace = [](const Values& x) -> Values {
    Value inner;
    CumulativeSum(x[0], x[1]);
    Scan({x[0]}, {x[1]}, [&](const ScanStep& step) -> ScanStep {
      inner = step.carry[0] * 2.0;
      return {.carry = {inner}, .rows = {}};
    });
    return {inner + 1.0};
  };
  EXPECT_THAT(EvaluateAll(trace, {Tensor::Scalar<float>(1), Vector({2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("belongs to another graph")));
}

Graph NestedGraph() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {kF32, {-1}});
  const ScanStep last =
      Scan({Sum(x)}, {x}, [&](const ScanStep& step) -> ScanStep {
        const Values chosen = Cond(
            step.rows[0] > 0.0,
            [&]() -> Values { return {step.carry[0] + Sum(x)}; },
            [&]() -> Values { return {step.rows[0]}; });
        return {.carry = {chosen[0]}, .rows = {}};
      });
  builder.AddResult(last.carry[0]);
  return *std::move(builder).Build();
}

TEST(ControlFlowTest, NestedGraphsSurviveEncoding) {
  const Graph graph = NestedGraph();
  ASSERT_OK_AND_ASSIGN(const Graph decoded,
                       DecodeGraph(EncodeGraph(graph), BuiltinOps()));
  EXPECT_EQ(decoded.ToString(), graph.ToString());
  EXPECT_THAT(graph.ToString(), HasSubstr("\n        graph then\n"));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Interpret(decoded, {Vector({-1, 3, 5})}));
  EXPECT_EQ(results[0].scalar<float>(), 13);
}

proto::Graph* BranchOf(proto::Graph* graph) {
  for (proto::Node& node : *graph->mutable_nodes()) {
    if (node.subgraphs_size() > 0) return node.mutable_subgraphs(0);
  }
  return nullptr;
}

TEST(ControlFlowTest, InvalidSubgraphsAreRejected) {
  const proto::Graph valid = EncodeGraph(NestedGraph());
  const auto expect_error = [](const proto::Graph& graph,
                               const std::string& what) {
    EXPECT_THAT(DecodeGraph(graph, BuiltinOps()).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  // Results and edges that do not exist, deep inside.
  proto::Graph graph = valid;
  BranchOf(BranchOf(&graph))->mutable_results(0)->set_node(1000);
  expect_error(graph, "which does not exist");
  graph = valid;
  BranchOf(BranchOf(&graph))->clear_parameters();
  expect_error(graph, "is not among the graph's parameters");
  // An op that is not allowed there, though its types are valid.
  graph = valid;
  proto::Node* seed = BranchOf(&graph)->add_nodes();
  seed->set_op("StepSeed");
  seed->set_name("seed");
  *seed->add_outputs() = EncodeGraph([] {
                           GraphBuilder builder(&BuiltinOps(), "seed");
                           StepSeed(builder);
                           return *std::move(builder).Build();
                         }())
                             .nodes(0)
                             .outputs(0);
  expect_error(graph, "\"seed\" (StepSeed) cannot be part of a branch");
  // A subgraph of an op that takes none.
  graph = valid;
  *graph.mutable_nodes(0)->add_subgraphs() = *BranchOf(&graph);
  expect_error(graph, "has 0 subgraphs, not 1");
}

TEST(ControlFlowTest, SubgraphsCannotBeNestedWithoutLimit) {
  proto::Graph graph = EncodeGraph(NestedGraph());
  proto::Graph* innermost = &graph;
  for (int depth = 0; depth < 20; ++depth) {
    const proto::Graph copy = EncodeGraph(NestedGraph());
    for (proto::Node& node : *innermost->mutable_nodes()) {
      if (node.subgraphs_size() > 0) *node.mutable_subgraphs(0) = copy;
    }
    innermost = BranchOf(innermost);
  }
  EXPECT_THAT(
      DecodeGraph(graph, BuiltinOps()).status(),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at depth 17")));
}

}  // namespace
}  // namespace muster
