#include "common/learn/train/onnx/inference_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const VariableHandle kWeight = {.name = "w", .type = {DType::kFloat32, {2, 2}}};

std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

TEST(InferenceGraphTest, ComputesWhatDependsOnConstantsOnly) {
  GraphBuilder builder(&BuiltinOps(), "model");
  const Value x = builder.Parameter("x", {DType::kFloat32, {-1, 4}});
  const Value w = ReadVariable(builder, kWeight);
  builder.AddResult(x + Reshape(w * 2, {4}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const Graph prepared,
      PrepareForExport(
          graph, {{"w", Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4})}}));
  const Node& sum = prepared.nodes[prepared.results[0].node];
  EXPECT_EQ(sum.op, "Add");
  const Node& computed = prepared.nodes[sum.inputs[1].node];
  ASSERT_OK_AND_ASSIGN(const Tensor value,
                       computed.attributes.Get<Tensor>("value"));
  EXPECT_TRUE(
      BitwiseEqual(value, Tensor::FromValues<float>({4}, {2, 4, 6, 8})));
}

// The rows of an embedding are looked up when the model runs.
TEST(InferenceGraphTest, LooksUpRowsOfVariables) {
  GraphBuilder builder(&BuiltinOps(), "model");
  builder.AddResult(
      GatherVariable(kWeight, builder.Parameter("ids", {DType::kInt64, {-1}})));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const Graph prepared,
      PrepareForExport(graph, {{"w", Tensor::Zeros(DType::kFloat32, {2, 2})}}));
  EXPECT_THAT(Ops(prepared), ElementsAre("Parameter", "Constant", "Gather"));
}

TEST(InferenceGraphTest, DoesNotComputeWhatIsMuchLarger) {
  GraphBuilder builder(&BuiltinOps(), "model");
  const Value x = builder.Parameter("x", {DType::kFloat32, {-1, 5000}});
  const Value one = builder.Constant(Tensor::Scalar(1.0f));
  builder.AddResult(x + BroadcastTo(one, {5000}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(const Graph prepared, PrepareForExport(graph, {}));
  EXPECT_THAT(Ops(prepared),
              ElementsAre("Parameter", "Constant", "BroadcastTo", "Add"));
}

TEST(InferenceGraphTest, RefusesUpdatesAndUnknownVariables) {
  GraphBuilder builder(&BuiltinOps(), "model");
  const Value x = builder.Parameter("x", kWeight.type);
  AssignVariable(kWeight, x);
  builder.AddResult(x);
  ASSERT_OK_AND_ASSIGN(const Graph updates, std::move(builder).Build());
  EXPECT_THAT(PrepareForExport(updates, {}).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("node AssignVariable"),
                             HasSubstr("updates a variable"))));

  GraphBuilder reader(&BuiltinOps(), "model");
  reader.AddResult(ReadVariable(reader, kWeight));
  ASSERT_OK_AND_ASSIGN(const Graph reads, std::move(reader).Build());
  EXPECT_THAT(PrepareForExport(reads, {}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("variable w")));
}

}  // namespace
}  // namespace muster
