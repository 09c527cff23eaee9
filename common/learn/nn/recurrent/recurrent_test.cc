#include "common/learn/nn/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/compute/variables/initial_value.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/recurrent/recurrent_layer.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Graph> Trace(const LayerPtr& layer,
                            const std::vector<TensorType>& types,
                            const CallContext& context = kInference) {
  if (layer->path().empty()) layer->SetPath("layer");
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> inputs;
  for (const TensorType& type : types) {
    inputs.push_back(builder.Parameter("x", type));
  }
  for (const Value& output : layer->CallAll(inputs, context)) {
    builder.AddResult(output);
  }
  return std::move(builder).Build();
}

const TensorType kBatch = {DType::kFloat32, {Shape::kUnknown, 5, 3}};

std::vector<LayerPtr> AllKinds(const SequenceOptions& options = {}) {
  return {SimpleRNN(2, {.sequence = options}), LSTM(2, {.sequence = options}),
          GRU(2, {.sequence = options})};
}

TEST(RecurrentTest, NamesWeightsAsKeras) {
  const LayerPtr layer = LSTM(2);
  layer->SetPath("lstm");
  ASSERT_OK(Trace(layer, {kBatch}));
  std::vector<std::string> names;
  for (const Weight& weight : layer->weights()) names.push_back(weight.name());
  EXPECT_THAT(names, ElementsAre("lstm/lstm_cell/kernel",
                                 "lstm/lstm_cell/recurrent_kernel",
                                 "lstm/lstm_cell/bias"));
}

TEST(RecurrentTest, HasTheOutputShapesOfItsOptions) {
  for (const LayerPtr& layer : AllKinds()) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, Trace(layer, {kBatch}));
    EXPECT_EQ(graph.TypeOf(graph.results[0]).shape,
              Shape({Shape::kUnknown, 2}));
  }
  for (const LayerPtr& layer :
       AllKinds({.return_sequences = true, .return_state = true})) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, Trace(layer, {kBatch}));
    EXPECT_EQ(graph.results.size(), layer->kind() == "LSTM" ? 3u : 2u);
    EXPECT_EQ(graph.TypeOf(graph.results[0]).shape,
              Shape({Shape::kUnknown, 5, 2}));
    EXPECT_EQ(graph.TypeOf(graph.results[1]).shape,
              Shape({Shape::kUnknown, 2}));
  }
}

// One product projects the inputs of all time steps, and one op runs them, so
// the graph does not grow with time, which may be unknown.
TEST(RecurrentTest, TracesTheSameGraphForAnyNumberOfTimeSteps) {
  for (const LayerPtr& layer : AllKinds({.return_sequences = true})) {
    const auto trace = [&](int64_t time_count) {
      return Trace(layer,
                   {{DType::kFloat32, {Shape::kUnknown, time_count, 3}}});
    };
    ASSERT_OK_AND_ASSIGN(const Graph few, trace(2));
    ASSERT_OK_AND_ASSIGN(const Graph many, trace(1000));
    ASSERT_OK_AND_ASSIGN(const Graph unknown, trace(Shape::kUnknown));
    EXPECT_EQ(many.nodes.size(), few.nodes.size()) << layer->kind();
    EXPECT_EQ(unknown.nodes.size(), few.nodes.size()) << layer->kind();
    EXPECT_EQ(unknown.TypeOf(unknown.results[0]).shape,
              Shape({Shape::kUnknown, Shape::kUnknown, 2}));
    int products = 0;
    int recurrences = 0;
    for (const Node& node : few.nodes) {
      products += node.op == "MatMul";
      recurrences += node.op == "Recurrence";
    }
    EXPECT_EQ(products, 1) << layer->kind();
    EXPECT_EQ(recurrences, 1) << layer->kind();
  }
}

TEST(RecurrentTest, InitializesTheForgetBiasWithOne) {
  const LayerPtr layer = LSTM(2);
  ASSERT_OK(Trace(layer, {kBatch}));
  Tensor bias;
  ASSERT_OK(FillInitialValue(layer->weights()[2].spec(), 0, 8, &bias));
  EXPECT_THAT(bias.flat<float>(), ElementsAre(0, 0, 1, 1, 0, 0, 0, 0));
}

// As Keras' initializers do, those of a bias [units] for the first gate, and of
// a bias [2 units] for the last two.
TEST(RecurrentTest, DrawsTheBiasOfTheOtherGates) {
  const LayerPtr layer =
      LSTM(1000, {.bias_initializer = GlorotUniform(/*seed=*/5)});
  ASSERT_OK(Trace(layer, {kBatch}));
  Tensor bias;
  ASSERT_OK(FillInitialValue(layer->weights()[2].spec(), 0, 4000, &bias));
  const absl::Span<const float> values = bias.flat<float>();
  const auto largest = [&](size_t begin, size_t count) {
    float found = 0;
    for (const float value : values.subspan(begin, count)) {
      found = std::max(found, std::abs(value));
    }
    return found;
  };
  EXPECT_THAT(values.subspan(1000, 1000), Each(1));
  EXPECT_NEAR(largest(0, 1000), std::sqrt(3.0 / 1000), 1e-3);
  EXPECT_NEAR(largest(2000, 2000), std::sqrt(3.0 / 2000), 1e-3);
  EXPECT_NE(values[0], values[2000]);
}

// With h = h * scale + 1 and no kernel, the output shows the mask of each time
// step.
TEST(RecurrentTest, UsesTheSameRecurrentDropoutAtAllTimeSteps) {
  const LayerPtr layer =
      SimpleRNN(40, {.activation = Activation::kLinear,
                     .sequence = {.recurrent_dropout = 0.5}});
  layer->SetPath("layer");
  Tensor identity = Tensor::Zeros(DType::kFloat32, {40, 40});
  for (int i = 0; i < 40; ++i) identity.mutable_flat<float>()[i * 41] = 1;
  const InterpretOptions options = {
      .run = {
          .step_seed = 3,
          .variables = {{"layer/simple_rnn_cell/kernel",
                         Tensor::Zeros(DType::kFloat32, {1, 40})},
                        {"layer/simple_rnn_cell/recurrent_kernel", identity},
                        {"layer/simple_rnn_cell/bias",
                         Tensor::Full(DType::kFloat32, {40}, 1)}}}};
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Evaluate(
          [&](const std::vector<Value>& inputs) {
            return (*layer)(inputs[0], kTraining);
          },
          {Tensor::Zeros(DType::kFloat32, {2, 3, 1})}, options));
  // 1 where the dropout mask is 0, and 2 (2 (1) + 1) + 1 = 7 where it is 1 /
  // 0.5.
  EXPECT_THAT(y.flat<float>(), Each(testing::AnyOf(1.0f, 7.0f)));
  EXPECT_THAT(y.flat<float>(), testing::Contains(1.0f));
  EXPECT_THAT(y.flat<float>(), testing::Contains(7.0f));
}

TEST(RecurrentTest, AppliesDropoutOnlyWhileTraining) {
  for (const LayerPtr& layer :
       AllKinds({.dropout = 0.5, .recurrent_dropout = 0.5})) {
    ASSERT_OK_AND_ASSIGN(const Graph inference, Trace(layer, {kBatch}));
    EXPECT_THAT(inference.ToString(), testing::Not(HasSubstr("StepSeed")));
    ASSERT_OK_AND_ASSIGN(const Graph training,
                         Trace(layer, {kBatch}, kTraining));
    EXPECT_THAT(training.ToString(), HasSubstr("StepSeed"));
  }
}

// Ids, and the weights of an embedding of width 2 and a GRU of 3 units.
const Tensor kIds = Tensor::FromValues<int32_t>({2, 4}, {1, 0, 2, 0,  //
                                                         0, 3, 0, 0});

Tensor Ramp(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  int i = 0;
  for (float& x : tensor.mutable_flat<float>()) {
    x = 0.3f * static_cast<float>(++i % 7) - 0.8f;
  }
  return tensor;
}

// Evaluates `trace` on the ids, with weights that do not depend on it.
absl::StatusOr<Tensor> RunOnIds(const std::function<Value(Value ids)>& trace) {
  return Evaluate(
      [&](const std::vector<Value>& inputs) { return trace(inputs[0]); },
      {kIds},
      {.run = {.variables = {{"embedding/embeddings", Ramp({4, 2})},
                             {"gru/gru_cell/kernel", Ramp({2, 9})},
                             {"gru/gru_cell/recurrent_kernel", Ramp({3, 9})},
                             {"gru/gru_cell/bias", Ramp({2, 9})}}}});
}

TEST(RecurrentTest, SkipsPaddingOfEmbeddings) {
  for (const bool return_sequences : {false, true}) {
    const SequenceOptions sequence = {.return_sequences = return_sequences};
    const auto model = [&](bool mask_zero) {
      const LayerPtr layer =
          Sequential({Embedding(4, 2, {.mask_zero = mask_zero}), Dropout(0),
                      GRU(3, {.sequence = sequence})});
      layer->SetPath("");
      return layer;
    };
    const LayerPtr masked = model(true);
    const LayerPtr unmasked = model(false);
    ASSERT_OK_AND_ASSIGN(const Tensor got,
                         RunOnIds([&](Value ids) { return (*masked)(ids); }));
    ASSERT_OK_AND_ASSIGN(
        const Tensor wanted, RunOnIds([&](Value ids) {
          const Value x = (*unmasked->layers()[0])(ids);
          const std::vector<Value> inputs = {x, NotEqual(ids, 0)};
          return (*unmasked->layers()[2])(inputs);
        }));
    ASSERT_OK_AND_ASSIGN(const Tensor all,
                         RunOnIds([&](Value ids) { return (*unmasked)(ids); }));
    const std::vector<float> got_values(got.flat<float>().begin(),
                                        got.flat<float>().end());
    EXPECT_THAT(wanted.flat<float>(), testing::ElementsAreArray(got_values));
    EXPECT_THAT(all.flat<float>(),
                testing::Not(testing::ElementsAreArray(got_values)));
  }
}

TEST(RecurrentTest, ReportsInvalidInputs) {
  const auto refused = [](const std::string& why) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  };
  const TensorType state = {DType::kFloat32, {Shape::kUnknown, 2}};
  EXPECT_THAT(Trace(LSTM(0), {kBatch}), refused("at least 1 unit"));
  EXPECT_THAT(Trace(GRU(2), {{DType::kFloat32, {Shape::kUnknown, 0, 3}}}),
              refused("at least one time step"));
  EXPECT_THAT(Trace(GRU(2), {{DType::kFloat32, {Shape::kUnknown, 3}}}),
              refused("[batch, time, features]"));
  EXPECT_THAT(Trace(LSTM(2), {kBatch, state}), refused("2 initial states"));
  EXPECT_THAT(Trace(GRU(2), {kBatch, {DType::kBool, {Shape::kUnknown}}}),
              refused("mask [batch, time]"));
  EXPECT_THAT(Trace(GRU(2, {.sequence = {.dropout = 1}}), {kBatch}),
              refused("[0, 1)"));
}

}  // namespace
}  // namespace muster
