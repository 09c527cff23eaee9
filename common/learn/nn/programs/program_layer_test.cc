#include "common/learn/nn/programs/program_layer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/programs/program.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/programs/program_loss.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DType kF32 = DType::kFloat32;

TensorType Rows(int64_t rows) { return {kF32, {rows, 3}}; }

// A program of the batch size 4 with these types of the batch.
std::string Encoded(const ProgramTypes& types, const ProgramTypes& of_four) {
  Program program;
  program.name = "scale";
  program.types = types;
  program.gradient = {.inputs = {0, 1}, .output_count = 1};
  program.variants = {{of_four, "module", "gradient"}};
  return program.Encode();
}

// y = x * gain, with a counter of calls and a seed while training.
ProgramLayerOptions ScaleOptions() {
  const TensorType gain = {kF32, {3}};
  const TensorType count = {DType::kInt64, {}};
  const TensorType seed = {DType::kInt32, {2}};
  const auto training = [&](int64_t rows) {
    return ProgramTypes{{Rows(rows), gain, count, seed},
                        {Rows(rows), {kF32, {}}, count}};
  };
  const auto inference = [&](int64_t rows) {
    return ProgramTypes{{Rows(rows), gain, count}, {Rows(rows), {kF32, {}}}};
  };
  return {
      .training_program = Encoded(training(Shape::kUnknown), training(4)),
      .inference_program = Encoded(inference(Shape::kUnknown), inference(4)),
      .weight_names = {"gain", "count"},
      .weight_types = {gain.ToString(), count.ToString()},
      .trainable_count = 1,
      .updated_weights = {1},
      .seed_count = 1,
      .adds_loss = true,
      .name = "scale"};
}

struct Traced {
  absl::StatusOr<Graph> graph;
  size_t loss_count = 0;
};

Traced Trace(const LayerPtr& layer, bool training,
             const TensorType& input = Rows(Shape::kUnknown)) {
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> losses;
  builder.AddResult((*layer)(builder.Parameter("x", input),
                             {.training = training, .losses = &losses}));
  return {std::move(builder).Build(), losses.size()};
}

std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

TEST(ProgramLayerTest, DeclaresTheWeightsOfTheProgram) {
  const LayerPtr layer = MakeProgramLayer(ScaleOptions());
  layer->SetPath("scale");
  ASSERT_OK(Trace(layer, true).graph);
  const std::vector<Weight> weights = layer->weights();
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].name(), "scale/gain");
  EXPECT_TRUE(weights[0].trainable());
  EXPECT_FALSE(weights[1].trainable());
  // Numbers cannot be averaged exactly.
  EXPECT_EQ(weights[1].spec().aggregation(),
            proto::AGGREGATION_ONLY_FIRST_REPLICA);
  EXPECT_EQ(layer->kind(), "Program");
  EXPECT_EQ(layer->output_shape(), Shape({Shape::kUnknown, 3}));
}

TEST(ProgramLayerTest, UpdatesWeightsAndDrawsSeedsOnlyInTraining) {
  const LayerPtr layer = MakeProgramLayer(ScaleOptions());
  const Traced training = Trace(layer, true);
  ASSERT_OK(training.graph);
  EXPECT_THAT(Ops(*training.graph),
              AllOf(Contains("Program"), Contains("AssignAddVariable"),
                    Contains("StepSeed")));
  const Traced inference = Trace(layer, false);
  ASSERT_OK(inference.graph);
  EXPECT_THAT(Ops(*inference.graph),
              AllOf(Contains("Program"), Not(Contains("AssignAddVariable")),
                    Not(Contains("StepSeed"))));
  // The added loss counts in evaluation, too.
  EXPECT_EQ(training.loss_count, 1u);
  EXPECT_EQ(inference.loss_count, 1u);
}

TEST(ProgramLayerTest, CastsInputsToTheDTypeOfTheProgram) {
  const LayerPtr layer = MakeProgramLayer(ScaleOptions());
  const Traced traced =
      Trace(layer, false, {DType::kUint8, {Shape::kUnknown, 3}});
  ASSERT_OK(traced.graph);
  EXPECT_THAT(Ops(*traced.graph), Contains("Cast"));
}

TEST(ProgramLayerTest, NamesTheLayerAndTheProgramOfAnError) {
  ProgramLayerOptions options = ScaleOptions();
  options.seed_count = 2;
  EXPECT_THAT(Trace(MakeProgramLayer(options), true).graph,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layer scale: program scale has 4 inputs and "
                                 "3 outputs; expected 5 and 3")));
  options = ScaleOptions();
  options.inference_program = "{}";
  EXPECT_THAT(Trace(MakeProgramLayer(options), false).graph,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layer scale: a program: name: is absent")));
  EXPECT_THAT(
      Trace(MakeProgramLayer(ScaleOptions()), true, {kF32, {4, 5}}).graph,
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("program scale takes")));
}

TEST(ProgramLossTest, GivesTheLossesOfExamplesToTheReduction) {
  const auto types = [](int64_t rows) {
    return ProgramTypes{{Rows(rows), Rows(rows)}, {{kF32, {rows}}}};
  };
  const Loss loss =
      ProgramLoss({.program = Encoded(types(Shape::kUnknown), types(4))});
  GraphBuilder builder(&BuiltinOps(), "test");
  // Labels are numbers of classes; the program takes floats.
  const Value labels =
      builder.Parameter("y", {DType::kInt64, {Shape::kUnknown, 3}});
  const Value value = loss(labels, builder.Parameter("x", Rows(-1)));
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value.shape(), Shape());
  EXPECT_OK(std::move(builder).Build());
}

// The gradient of such a loss is a constant, so a training step does not
// multiply by it.
TEST(ProgramLossTest, TakesTheFirstColumnWithoutAProgram) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value rows = builder.Parameter("x", Rows(-1));
  const Value losses =
      ProgramLoss({})(builder.Parameter("y", {kF32, {-1}}), rows);
  EXPECT_EQ(losses.shape(), Shape());
  const Value statistics = ProgramMetric({}).StatisticsOf(rows, rows);
  EXPECT_EQ(statistics.shape(), Shape({2}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  EXPECT_THAT(Ops(graph), Not(Contains("Program")));
}

TEST(ProgramLossTest, RejectsPredictionsWithoutColumns) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Parameter("x", {kF32, {-1}});
  ProgramLoss({})(x, x);
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has the output float32[?]; expected a row "
                                 "for each example")));
}

TEST(ProgramLossTest, ReportsInvalidProgramsToTheBuilder) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Parameter("x", Rows(-1));
  ProgramLoss({.program = "7"})(x, x);
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a program: name: is absent")));
}

TEST(ProgramMetricTest, RejectsWeightsThatItsProgramDoesNotTake) {
  const auto types = [](int64_t rows) {
    return ProgramTypes{{Rows(rows), Rows(rows)}, {{kF32, {2}}}};
  };
  const Metric metric = ProgramMetric(
      {.statistics_program = Encoded(types(Shape::kUnknown), types(4))});
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Parameter("x", Rows(-1));
  EXPECT_EQ(metric.StatisticsOf(x, x).shape(), Shape({2}));
  metric.StatisticsOf(x, x, builder.Parameter("w", {kF32, {-1}}));
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes no sample weights")));
}

}  // namespace
}  // namespace muster
