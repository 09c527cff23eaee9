#include "common/compute/graph/graph.h"

#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<TensorType>> SameTypes(
    const TypeRuleArguments& arguments) {
  if (arguments.inputs[0] != arguments.inputs[1]) {
    return absl::InvalidArgumentError("inputs differ");
  }
  return std::vector<TensorType>{arguments.inputs[0]};
}

absl::StatusOr<std::vector<TensorType>> FloatScalar(const TypeRuleArguments&) {
  return std::vector<TensorType>{{DType::kFloat32, {}}};
}

const OpRegistry& TestRegistry() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    ops->Register({.name = "Plus",
                   .input_count_min = 2,
                   .input_count_max = 2,
                   .type_rule = SameTypes});
    ops->Register({.name = "Read",
                   .type_rule = FloatScalar,
                   .effect = OpEffect::kReadVariable});
    ops->Register({.name = "Update",
                   .input_count_min = 1,
                   .input_count_max = 1,
                   .type_rule = FloatScalar,
                   .effect = OpEffect::kUpdateVariable});
    return ops;
  }();
  return *registry;
}

const TensorType kVector = {DType::kFloat32, {-1}};

Graph SumGraph() {
  GraphBuilder builder(&TestRegistry(), "sum");
  const Value a = builder.Parameter("a", kVector);
  const Value b = builder.Parameter("b", kVector);
  GraphBuilder::NameScope scope(&builder, "inner");
  builder.AddResult(builder.Op("Plus", {a, b}));
  return std::move(builder).Build().value();
}

TEST(GraphBuilderTest, TracesNodesInOrder) {
  EXPECT_EQ(SumGraph().ToString(),
            "graph sum\n"
            "  %0 = Parameter() {dtype=float32, name=\"a\", shape=[?]} : "
            "float32[?]  # Parameter\n"
            "  %1 = Parameter() {dtype=float32, name=\"b\", shape=[?]} : "
            "float32[?]  # Parameter_1\n"
            "  %2 = Plus(%0, %1) : float32[?]  # inner/Plus\n"
            "  return %2\n");
}

TEST(GraphBuilderTest, KeepsTheFirstErrorWithOpNodeAndTypes) {
  GraphBuilder builder(&TestRegistry(), "bad");
  const Value a = builder.Parameter("a", {DType::kFloat32, {2}});
  const Value b = builder.Parameter("b", {DType::kFloat32, {3}});
  const Value poisoned = builder.Op("Plus", {a, b});
  EXPECT_FALSE(poisoned.ok());
  builder.AddResult(builder.Op("Plus", {poisoned, a}));
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Plus \"Plus\" (float32[2], float32[3]): inputs "
                       "differ"));
}

TEST(GraphBuilderTest, UnknownOpAndWrongArityAreErrors) {
  GraphBuilder unknown(&TestRegistry(), "g");
  unknown.Op("Nope", {});
  EXPECT_THAT(unknown.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("no op \"Nope\"")));
  GraphBuilder arity(&TestRegistry(), "g");
  arity.Op("Plus", {arity.Parameter("a", kVector)});
  EXPECT_THAT(arity.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("takes 2 inputs, not 1")));
}

TEST(GraphBuilderTest, KeepsTheOrderOfAccessesToOneVariable) {
  GraphBuilder builder(&TestRegistry(), "order");
  const auto read = [&](const std::string& variable) {
    return builder.Op("Read", {}, {{"variable", variable}});
  };
  const auto update = [&](const std::string& variable, Value value) {
    return builder.Op("Update", {value}, {{"variable", variable}});
  };
  const Value first = read("v");  // 0
  const Value other = read("w");  // 1
  read("v");                      // 2
  update("v", other);             // 3
  update("v", first);             // 4
  read("v");                      // 5
  const std::vector<Node>& nodes = builder.graph().nodes;
  EXPECT_THAT(nodes[2].control_inputs, ElementsAre());
  EXPECT_THAT(nodes[3].control_inputs, ElementsAre(0, 2));
  EXPECT_THAT(nodes[4].control_inputs, ElementsAre(3));
  EXPECT_THAT(nodes[5].control_inputs, ElementsAre(4));
}

TEST(GraphCodecTest, RoundTripPreservesTheGraph) {
  const Graph graph = SumGraph();
  ASSERT_OK_AND_ASSIGN(const Graph decoded,
                       DecodeGraph(EncodeGraph(graph), TestRegistry()));
  EXPECT_EQ(decoded.ToString(), graph.ToString());
  EXPECT_EQ(decoded.parameters, graph.parameters);
}

TEST(GraphVerifierTest, RejectsInvalidGraphs) {
  using Breakage = void (*)(Graph*);
  const Breakage breakages[] = {
      [](Graph* g) { g->nodes[2].inputs[0].node = 2; },
      [](Graph* g) { g->nodes[2].inputs[0].node = -1; },
      [](Graph* g) { g->nodes[2].inputs[0].output = 1; },
      [](Graph* g) { g->nodes[2].control_inputs = {7}; },
      [](Graph* g) { g->nodes[2].op = "Nope"; },
      [](Graph* g) { g->nodes[2].name = g->nodes[0].name; },
      [](Graph* g) { g->nodes[2].outputs[0].dtype = DType::kInt32; },
      [](Graph* g) { g->nodes[2].outputs.clear(); },
      [](Graph* g) { g->parameters = {0}; },
      [](Graph* g) {
        g->parameters = {0, 0};
      },
      [](Graph* g) {
        g->parameters = {0, 1, 2};
      },
      [](Graph* g) { g->results[0].node = 3; },
      [](Graph* g) { g->results[0].output = -1; },
  };
  for (const Breakage breakage : breakages) {
    Graph graph = SumGraph();
    ASSERT_OK(VerifyGraph(graph, TestRegistry()));
    breakage(&graph);
    EXPECT_THAT(VerifyGraph(graph, TestRegistry()),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << graph.ToString();
  }
}

TEST(GraphCodecTest, FlippedBytesNeverCrash) {
  const std::string bytes = EncodeGraph(SumGraph()).SerializeAsString();
  RandomStream random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string mutant = bytes;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      mutant[random.Below(mutant.size())] = static_cast<char>(random.Next64());
    }
    proto::Graph encoded;
    if (!encoded.ParseFromString(mutant)) continue;
    const auto decoded = DecodeGraph(encoded, TestRegistry());
    if (decoded.ok()) {
      EXPECT_OK(VerifyGraph(*decoded, TestRegistry()));
    }
  }
}

TEST(SpecializeTypesTest, FillsInTheExtentsOfTheArguments) {
  const Graph graph = SumGraph();
  const TensorType four = {DType::kFloat32, {4}};
  ASSERT_OK_AND_ASSIGN(const auto types,
                       SpecializeTypes(graph, TestRegistry(), {four, four}));
  EXPECT_EQ(types[2][0], four);
  EXPECT_THAT(
      SpecializeTypes(graph, TestRegistry(), {four, {DType::kFloat32, {5}}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inner/Plus")));
  EXPECT_THAT(
      SpecializeTypes(graph, TestRegistry(), {four, {DType::kInt32, {4}}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(
                   "argument 1 (\"b\") is declared float32[?]; got int32[4]")));
}

}  // namespace
}  // namespace muster
