#include "common/learn/nn/layer.h"

#include <memory>
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
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Scale : public Layer {
 public:
  void Build(const Shape& input) override {
    gain_ = AddWeight("gain", {input.dims().back()}, Ones());
  }
  Value Call(Value x, const CallContext&) override { return x * gain_; }

 private:
  Weight gain_;
};

// Calls the layer on a parameter of type `input`.
absl::StatusOr<Graph> Trace(const LayerPtr& layer, const TensorType& input,
                            const CallContext& context = kInference) {
  GraphBuilder builder(&BuiltinOps(), "test");
  builder.AddResult((*layer)(builder.Parameter("x", input), context));
  return std::move(builder).Build();
}

std::vector<std::string> WeightNames(const LayerPtr& layer) {
  std::vector<std::string> names;
  for (const Weight& weight : layer->weights()) names.push_back(weight.name());
  return names;
}

const TensorType kBatch{DType::kFloat32, {Shape::kUnknown, 4}};

TEST(LayerTest, NamesWeightsAsKeras) {
  const LayerPtr model = Sequential({
      Dense(3),
      Dense(3, {.name = "dense_1"}),
      Dense(3),
      Sequential({Dense(2), std::make_shared<Scale>()}),
  });
  model->SetPath("");
  ASSERT_OK(Trace(model, kBatch));
  EXPECT_THAT(WeightNames(model),
              ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel",
                          "dense_1/bias", "dense_2/kernel", "dense_2/bias",
                          "sequential/dense/kernel", "sequential/dense/bias",
                          "sequential/scale/gain"));
}

TEST(LayerTest, CustomLayersReadTheirWeights) {
  const LayerPtr scale = std::make_shared<Scale>();
  scale->SetPath("scale");
  EXPECT_EQ(scale->kind(), "Scale");
  ASSERT_OK_AND_ASSIGN(const Graph graph, Trace(scale, kBatch));
  EXPECT_EQ(graph.TypeOf(graph.results[0]), kBatch);
  EXPECT_THAT(graph.ToString(), HasSubstr("ReadVariable"));
}

TEST(LayerTest, BuildsOnce) {
  const LayerPtr layer = Dense(3);
  layer->SetPath("dense");
  EXPECT_FALSE(layer->built());
  EXPECT_THAT(layer->weights(), IsEmpty());
  ASSERT_OK(Trace(layer, kBatch));
  ASSERT_OK(Trace(layer, kBatch));
  EXPECT_TRUE(layer->built());
  EXPECT_EQ(layer->weights().size(), 2u);
  EXPECT_EQ(layer->output_shape(), Shape({Shape::kUnknown, 3}));
}

TEST(LayerTest, FrozenLayersHaveNoTrainableWeights) {
  const LayerPtr early = Dense(3);
  const LayerPtr block = Sequential({early, Dense(2)});
  const LayerPtr model = Sequential({block, Dense(1)});
  model->SetPath("");
  block->set_trainable(false);  // Also for weights created later.
  ASSERT_OK(Trace(model, kBatch));
  std::vector<std::string> trainable;
  for (const Weight& weight : model->weights()) {
    if (weight.trainable()) trainable.push_back(weight.name());
  }
  EXPECT_THAT(trainable, ElementsAre("dense/kernel", "dense/bias"));
  early->set_trainable(true);
  EXPECT_TRUE(model->weights().front().trainable());
  EXPECT_FALSE(block->trainable());
}

TEST(LayerTest, ClassNamesBecomeSnakeCase) {
  EXPECT_EQ(ToSnakeCase("Dense"), "dense");
  EXPECT_EQ(ToSnakeCase("LayerNorm"), "layer_norm");
  EXPECT_EQ(ToSnakeCase("MLPBlock"), "mlp_block");
  EXPECT_EQ(ToSnakeCase("Conv2D"), "conv2d");
  EXPECT_EQ(ToSnakeCase("MaxPooling2D"), "max_pooling2d");
  EXPECT_EQ(ToSnakeCase("ReLU"), "re_lu");
  EXPECT_EQ(ToSnakeCase("LSTM"), "lstm");
}

TEST(LayerTest, ReportsWeightsOfUnknownShapeWithTheNameOfTheLayer) {
  const TensorType unknown{DType::kFloat32, {Shape::kUnknown, Shape::kUnknown}};
  const LayerPtr layer = Dense(3);
  layer->SetPath("dense");
  EXPECT_THAT(
      Trace(layer, unknown),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("layer dense"), HasSubstr("float32[?,?]"))));
}

TEST(DenseTest, RejectsInputsWithoutFeatures) {
  EXPECT_THAT(Trace(Dense(3), {DType::kFloat32, {Shape::kUnknown}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Trace(Dense(0), kBatch),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Dense(0)")));
  EXPECT_THAT(
      Trace(Dense(-1), kBatch),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Dense(-1)")));
}

TEST(DenseTest, AcceptsIntegers) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Trace(Dense(3), {DType::kUint8, {Shape::kUnknown, 4}}));
  EXPECT_EQ(graph.TypeOf(graph.results[0]).dtype, DType::kFloat32);
}

TEST(FlattenTest, KeepsTheBatchUnknown) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      Trace(Flatten(), {DType::kUint8, {Shape::kUnknown, 28, 28}}));
  EXPECT_EQ(graph.TypeOf(graph.results[0]),
            (TensorType{DType::kUint8, {Shape::kUnknown, 784}}));
}

TEST(DropoutTest, ReturnsItsInputOutsideTraining) {
  ASSERT_OK_AND_ASSIGN(const Graph inference, Trace(Dropout(0.5), kBatch));
  EXPECT_EQ(inference.nodes.size(), 1u);  // The parameter.
  ASSERT_OK_AND_ASSIGN(const Graph training,
                       Trace(Dropout(0.5), kBatch, kTraining));
  EXPECT_THAT(training.ToString(), HasSubstr("StepSeed"));
}

TEST(DropoutTest, RejectsRatesOutOfRange) {
  EXPECT_THAT(
      Trace(Dropout(1.5), kBatch, kTraining),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rate is 1.5")));
}

TEST(EmbeddingTest, ReadsOnlyTheRowsThatOccur) {
  const LayerPtr layer = Embedding(1000, 16);
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Trace(layer, {DType::kInt32, {Shape::kUnknown, 7}}));
  EXPECT_EQ(graph.TypeOf(graph.results[0]),
            (TensorType{DType::kFloat32, {Shape::kUnknown, 7, 16}}));
  EXPECT_THAT(graph.ToString(), HasSubstr("GatherVariable"));
  EXPECT_THAT(graph.ToString(), testing::Not(HasSubstr("ReadVariable")));
}

TEST(NormalizationTest, RequiresDataOrConstants) {
  EXPECT_THAT(
      Trace(Normalization(), kBatch),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Observe()")));
}

TEST(NormalizationTest, RejectsAnotherNumberOfFeatures) {
  const auto layer = MakeLayer<NormalizationLayer>();
  EXPECT_OK(layer->Observe(Tensor::Zeros(DType::kFloat32, {2, 3})));
  EXPECT_THAT(layer->Observe(Tensor::Zeros(DType::kFloat32, {2, 4})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected 3 features")));
}

TEST(ActivationLayerTest, HasTheKindActivation) {
  EXPECT_EQ(Activate(Activation::kRelu)->kind(), "Activation");
}

}  // namespace
}  // namespace muster
