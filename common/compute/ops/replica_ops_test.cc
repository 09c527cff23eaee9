#include "common/compute/ops/replica_ops.h"

#include <functional>
#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/compute/ops/variable_ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kRows = {DType::kFloat32, {Shape::kUnknown, 3}};
const VariableHandle kVariable = {"v", {DType::kFloat32, {}}};

absl::StatusOr<Graph> Trace(const std::function<void(GraphBuilder&)>& body) {
  GraphBuilder builder(&BuiltinOps(), "test");
  body(builder);
  return std::move(builder).Build();
}

// Returns the type of the only result in every replica, where replica r has an
// argument of shape shapes[r].
absl::StatusOr<std::vector<std::string>> ResultTypes(
    const std::function<Value(Value)>& function, const TensorType& declared,
    const std::vector<Shape>& shapes) {
  ASSIGN_OR_RETURN(
      const Graph graph, Trace([&](GraphBuilder& builder) {
        builder.AddResult(function(builder.Parameter("x", declared)));
      }));
  std::vector<std::vector<TensorType>> parameters;
  for (const Shape& shape : shapes) {
    parameters.push_back({{declared.dtype, shape}});
  }
  ASSIGN_OR_RETURN(const std::vector<NodeTypes> types,
                   SpecializeReplicaTypes(graph, BuiltinOps(), parameters));
  std::vector<std::string> results;
  for (const NodeTypes& of_replica : types) {
    results.push_back(
        of_replica[graph.results[0].node][graph.results[0].output].ToString());
  }
  return results;
}

TEST(ReplicaOpsTest, GathersTheRowsOfAllReplicas) {
  const auto gather = [](Value x) { return AllGather(x, 0); };
  EXPECT_THAT(ResultTypes(gather, kRows, {{2, 3}, {0, 3}, {5, 3}}),
              IsOkAndHolds(
                  ElementsAre("float32[7,3]", "float32[7,3]", "float32[7,3]")));
  const auto own_part = [](Value x) { return ReplicaPart(AllGather(x, 0), x); };
  EXPECT_THAT(ResultTypes(own_part, kRows, {{2, 3}, {0, 3}}),
              IsOkAndHolds(ElementsAre("float32[2,3]", "float32[0,3]")));
}

TEST(ReplicaOpsTest, GathersAlongAnyAxis) {
  const TensorType any = {DType::kFloat32, {-1, -1, -1}};
  const auto last = [](Value x) { return AllGather(x, -1); };
  EXPECT_THAT(ResultTypes(last, any, {{2, 4, 1}, {2, 4, 3}}),
              IsOkAndHolds(ElementsAre("float32[2,4,4]", "float32[2,4,4]")));
  const auto out_of_range = [](Value x) { return AllGather(x, 3); };
  EXPECT_THAT(
      ResultTypes(out_of_range, any, {{2, 4, 1}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("AllGather")));
}

TEST(ReplicaOpsTest, NamesReplicasWithInconsistentShapes) {
  const TensorType any = {DType::kFloat32, {-1, -1}};
  const auto gather = [](Value x) { return AllGather(x, 0); };
  EXPECT_THAT(ResultTypes(gather, any, {{2, 3}, {2, 4}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("one has float32[2,3] and replica 1 has "
                                 "float32[2,4]")));
  const auto reduce = [](Value x) { return AllReduce(x, "sum"); };
  EXPECT_THAT(ResultTypes(reduce, any, {{2, 3}, {1, 3}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("replica 1 has float32[1,3]")));
}

TEST(ReplicaOpsTest, SingleReplicaKeepsItsValue) {
  const Tensor x = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
  const auto trace = [](const std::vector<Value>& inputs) {
    GraphBuilder& builder = *inputs[0].builder();
    return std::vector<Value>{AllReduce(inputs[0], "mean"),
                              AllGather(inputs[0], 1),
                              ReplicaPart(inputs[0], inputs[0]),
                              ReplicaId(builder), ReplicaCount(builder)};
  };
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      EvaluateAll(trace, {x}, {.unknown_extents = true, .run = {}}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(BitwiseEqual(results[i], x)) << i;
  EXPECT_EQ(results[3].scalar<int32_t>(), 0);
  EXPECT_EQ(results[4].scalar<int32_t>(), 1);
}

TEST(ReplicaOpsTest, CollectivesKeepTheirOrderWhenEncoded) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Trace([](GraphBuilder& builder) {
                         const Value x = builder.Parameter("x", kRows);
                         AllReduce(x, "sum");  // 1
                         AllGather(x, 0);      // 2
                         AllReduce(x, "max");  // 3
                       }));
  EXPECT_THAT(graph.nodes[1].control_inputs, ElementsAre());
  EXPECT_THAT(graph.nodes[2].control_inputs, ElementsAre(1));
  EXPECT_THAT(graph.nodes[3].control_inputs, ElementsAre(2));
  EXPECT_THAT(graph.ToString(), HasSubstr("%3 = AllReduce(%0) {reduction="
                                          "\"max\"} : float32[?,3]"));
  ASSERT_OK_AND_ASSIGN(const Graph decoded,
                       DecodeGraph(EncodeGraph(graph), BuiltinOps()));
  EXPECT_EQ(decoded.ToString(), graph.ToString());
}

TEST(SetLossDenominatorTest, LaterUpdatesRunAfterIt) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, Trace([](GraphBuilder& builder) {
                         const Value x =
                             builder.Parameter("x", kVariable.type);  // 0
                         AssignVariable(kVariable, x);                // 1
                         SetLossDenominator(x);                       // 2
                         ApplyGradient(kVariable, x);                 // 3
                         ApplyGradient({"w", kVariable.type}, x);     // 4
                       }));
  EXPECT_THAT(graph.nodes[1].control_inputs, ElementsAre());
  EXPECT_THAT(graph.nodes[3].control_inputs, ElementsAre(2, 1));
  EXPECT_THAT(graph.nodes[4].control_inputs, ElementsAre(2));
  EXPECT_OK(VerifyGraph(graph, BuiltinOps()));
}

TEST(SetLossDenominatorTest, MustBeCalledOnceAndBeforeTheFirstGradient) {
  EXPECT_THAT(Trace([](GraphBuilder& builder) {
                const Value x = builder.Parameter("x", kVariable.type);
                ApplyGradient(kVariable, x);
                SetLossDenominator(x);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("comes after ApplyGradient")));
  EXPECT_THAT(Trace([](GraphBuilder& builder) {
                const Value x = builder.Parameter("x", kVariable.type);
                SetLossDenominator(x);
                SetLossDenominator(x);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("comes after SetLossDenominator")));
}

}  // namespace
}  // namespace muster
