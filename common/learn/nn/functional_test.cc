#include "common/learn/nn/functional.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kBatch = Shape::kUnknown;

class Sum2 : public Layer {
 public:
  using Layer::Layer;
  int input_count() const override { return 2; }

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext&) override {
    return {inputs[0] + inputs[1]};
  }
};

// Splits the features into two halves.
class Split2 : public Layer {
 public:
  int output_count() const override { return 2; }

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override {
    seen_training = context.training;
    return Split(inputs[0], {2, 2}, -1);
  }

 public:
  bool seen_training = false;
};

absl::StatusOr<Graph> Trace(const LayerPtr& layer,
                            const std::vector<TensorType>& inputs,
                            const CallContext& context = kInference) {
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> values;
  for (const TensorType& type : inputs) {
    values.push_back(builder.Parameter("x", type));
  }
  for (const Value& output : layer->CallAll(values, context)) {
    builder.AddResult(output);
  }
  return std::move(builder).Build();
}

std::vector<std::string> WeightNames(const LayerPtr& layer) {
  std::vector<std::string> names;
  for (const Weight& weight : layer->weights()) names.push_back(weight.name());
  return names;
}

std::vector<std::string> LayerNames(const LayerPtr& model) {
  std::vector<std::string> names;
  for (const LayerPtr& layer : model->layers()) names.push_back(layer->name());
  return names;
}

TEST(FunctionalTest, SupportsSeveralInputsAndOutputs) {
  const LayerOutput a = Input({4});
  const LayerOutput b = Input({2}, {.name = "b"});
  const LayerOutput x = Dense(3)(a);
  const LayerOutput y = Dense(3, {.use_bias = false})(b);
  const LayerOutput sum = MakeLayer<Sum2>()({x, y});
  const LayerPtr model = Functional({a, b}, {sum, Dense(5)(sum)});
  model->SetPath("");

  EXPECT_EQ(model->name(), "functional");
  EXPECT_THAT(model->input_types(),
              ElementsAre(TensorType{DType::kFloat32, {kBatch, 4}},
                          TensorType{DType::kFloat32, {kBatch, 2}}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, Trace(model, model->input_types()));
  ASSERT_EQ(graph.results.size(), 2u);
  EXPECT_EQ(graph.TypeOf(graph.results[0]).shape, Shape({kBatch, 3}));
  EXPECT_EQ(graph.TypeOf(graph.results[1]).shape, Shape({kBatch, 5}));
  EXPECT_THAT(WeightNames(model),
              ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel",
                          "dense_2/kernel", "dense_2/bias"));
}

// Expected: [layer.name for layer in model.layers] of the same model in Keras.
TEST(FunctionalTest, OrdersLayersAsKerasAndNamesThemInCreationOrder) {
  const LayerOutput in = Input({4});
  const LayerOutput late = Dense(2)(in);       // dense
  const LayerOutput first = Dense(3)(in);      // dense_1
  const LayerOutput second = Dense(2)(first);  // dense_2
  const LayerPtr model = Functional(in, MakeLayer<Sum2>("sum")({second, late}));
  model->SetPath("");
  EXPECT_THAT(LayerNames(model),
              ElementsAre("input_layer", "dense_1", "dense_2", "dense", "sum"));
}

TEST(FunctionalTest, SharesWeightsBetweenCallsOfALayer) {
  const LayerOutput a = Input({4});
  const LayerOutput b = Input({4});
  const LayerPtr tower = Dense(3);
  const LayerPtr model =
      Functional({a, b}, MakeLayer<Sum2>()({tower(a), Dense(3)(tower(b))}));
  model->SetPath("");
  ASSERT_OK(Trace(model, model->input_types()));
  EXPECT_THAT(WeightNames(model),
              ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel",
                          "dense_1/bias"));
}

TEST(FunctionalTest, CanBePartOfAnotherModel) {
  const LayerOutput in = Input({4});
  const LayerPtr base = Functional(in, Dense(3)(in), {.name = "base"});
  base->SetPath("");
  ASSERT_OK(Trace(base, base->input_types()));
  EXPECT_THAT(WeightNames(base), ElementsAre("dense/kernel", "dense/bias"));

  const LayerOutput outer = Input({2, 2});
  const LayerPtr head = Sequential({Dense(2)});
  const LayerPtr model = Functional(outer, head(base(Flatten()(outer))));
  model->SetPath("");
  ASSERT_OK(Trace(model, model->input_types()));
  EXPECT_THAT(WeightNames(model),
              ElementsAre("base/dense/kernel", "base/dense/bias",
                          "sequential/dense/kernel", "sequential/dense/bias"));
}

TEST(FunctionalTest, SharesLayersWithANestedModel) {
  const LayerPtr shared = Dense(4);
  const LayerOutput in = Input({4});
  const LayerPtr inner = Functional(in, shared(in), {.name = "inner"});
  const LayerOutput outer = Input({4});
  const LayerPtr model = Functional(outer, shared(inner(outer)));
  model->SetPath("");
  ASSERT_OK(Trace(model, model->input_types()));
  EXPECT_THAT(WeightNames(model),
              ElementsAre("inner/dense/kernel", "inner/dense/bias"));
}

TEST(FunctionalTest, ReturnsAllOutputsOfALayer) {
  const LayerOutput in = Input({4});
  const LayerPtrTo<Split2> split = MakeLayer<Split2>();
  const LayerOutputs halves = split.CallAll(in);
  ASSERT_EQ(halves.size(), 2u);
  const LayerPtr model = Functional(in, {halves[1], halves[0]});
  model->SetPath("");
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Trace(model, model->input_types(), kTraining));
  EXPECT_EQ(graph.TypeOf(graph.results[1]).shape, Shape({kBatch, 2}));
  EXPECT_TRUE(split->seen_training);
}

TEST(FunctionalTest, KeepsALayerInInferenceMode) {
  const LayerOutput in = Input({4});
  const LayerPtrTo<Split2> split = MakeLayer<Split2>();
  split->seen_training = true;
  const LayerPtr model = Functional(in, split(in, kInference));
  ASSERT_OK(Trace(model, model->input_types(), kTraining));
  EXPECT_FALSE(split->seen_training);
}

TEST(FunctionalTest, BuildsAModelFromIntermediateOutputsOfAnother) {
  const LayerOutput in = Input({4});
  const LayerOutput features = Dense(3, {.name = "features"})(in);
  const auto model = Functional(in, Dense(2)(features));
  const auto extractor = Functional(in, model->OutputOf("features"));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Trace(extractor, extractor->input_types()));
  EXPECT_EQ(graph.TypeOf(graph.results[0]).shape, Shape({kBatch, 3}));

  const auto head = Functional(features, model->outputs());
  EXPECT_THAT(head->input_types(), IsEmpty());
  EXPECT_EQ(head->layers().size(), 1u);
  ASSERT_OK(Trace(head, {{DType::kFloat32, {kBatch, 3}}}));
}

TEST(FunctionalTest, InputsConvertDtypesAndRejectOtherShapes) {
  const LayerOutput in = Input({4}, {.name = "pixels"});
  const LayerPtr model = Functional(in, Dense(3)(in));
  model->SetPath("");
  EXPECT_OK(Trace(model, {{DType::kUint8, {kBatch, 4}}}));
  EXPECT_THAT(Trace(model, {{DType::kFloat32, {kBatch, 5}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input pixels: expected float32[?,4], got "
                                 "float32[?,5]")));
}

TEST(FunctionalTest, ReportsInvalidModels) {
  const LayerOutput a = Input({4}, {.name = "a"});
  const LayerOutput b = Input({4}, {.name = "b"});
  const LayerOutput sum = MakeLayer<Sum2>()({a, b});
  EXPECT_THAT(Functional(a, sum)->status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("depends on b, which is not among")));
  EXPECT_THAT(Functional(a, LayerOutput())->status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Functional(LayerOutput(), sum)->status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Functional(a, LayerOutputs())->status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const LayerOutput twice =
      Dense(4, {.name = "same"})(Dense(4, {.name = "same"})(a));
  const LayerPtr model = Functional(a, twice);
  EXPECT_THAT(Trace(model, {{DType::kFloat32, {kBatch, 4}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("are named \"same\"")));
}

TEST(SequentialTest, TakesItsInputTypeFromInput) {
  const LayerPtr model = Sequential({Input({4}), Dense(3)});
  model->SetPath("");
  EXPECT_THAT(LayerNames(model), ElementsAre("dense"));
  ASSERT_EQ(model->input_types().size(), 1u);
  EXPECT_OK(Trace(model, model->input_types()));
  EXPECT_THAT(Trace(model, {{DType::kFloat32, {kBatch, 5}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FunctionalTest, BuildsDeepModelsWithoutRecursion) {
  const LayerOutput in = Input({1});
  LayerOutput x = in;
  for (int i = 0; i < 10'000; ++i) x = Flatten()(x);
  EXPECT_EQ(Functional(in, x)->layers().size(), 10'001u);
}

}  // namespace
}  // namespace muster
