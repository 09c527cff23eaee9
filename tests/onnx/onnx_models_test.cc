// Exports whole models, and compares the results of onnxruntime with the
// predictions of Muster.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/applications/efficientnet.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/applications/resnet50.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/drawn_values.h"
#include "tests/onnx/onnx_runs.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

// Draws values for vectors: biases and statistics begin with constants, which
// would hide errors. Matrices keep their initial values.
Tensor DrawnValue(const Weight& weight, const Tensor& first, uint32_t key) {
  if (first.shape().rank() != 1) return first;
  const bool is_factor = absl::EndsWith(weight.name(), "moving_variance") ||
                         absl::EndsWith(weight.name(), "gamma");
  return DrawnTensor(key, first.shape(), is_factor ? 1 : 0,
                     is_factor ? 0.2 : 0.1);
}

absl::Status DrawWeights(Model& model) {
  ASSIGN_OR_RETURN(std::vector<Tensor> values, model.GetWeights());
  const std::vector<Weight> weights = model.weights();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = DrawnValue(weights[i], values[i], static_cast<uint32_t>(i + 1));
  }
  return model.SetWeights(values);
}

// Returns integers from 0 to `limit` - 1. The first `length` of each row are
// positive, except for one 0 in some rows.
Tensor Tokens(const Shape& shape, int64_t limit, int64_t length) {
  Tensor tokens = Tensor::Zeros(DType::kInt64, shape);
  const auto values = tokens.mutable_flat<int64_t>();
  for (int64_t row = 0; row < shape.dim(0); ++row) {
    for (int64_t i = 0; i < length; ++i) {
      if (i == 1 && row % 2 == 1) continue;
      values[row * shape.dim(1) + i] = 1 + (7 * row + 3 * i) % (limit - 1);
    }
  }
  return tokens;
}

// Exports the model, runs it with these inputs, and returns the differences.
std::vector<std::string> Differences(Model& model,
                                     const std::vector<Tensor>& inputs) {
  const auto prepare = [&](OnnxRuns* runs) -> absl::Status {
    RETURN_IF_ERROR(model.Compile({}));
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back(input.type());
    RETURN_IF_ERROR(model.Build(types));
    RETURN_IF_ERROR(DrawWeights(model));
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                     model.PredictAll(Element(inputs)));
    RETURN_IF_ERROR(model.Export(runs->NextPath()));
    runs->Add("model", inputs, outputs);
    return absl::OkStatus();
  };
  OnnxRuns runs;
  const absl::Status status = prepare(&runs);
  if (!status.ok()) return {status.ToString()};
  return runs.Run();
}

class OnnxModelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasOnnxruntime()) GTEST_SKIP() << kNoOnnxruntime;
  }
};

TEST_F(OnnxModelsTest, Mlp) {
  Model model =
      Sequential({Input({7}), Dense(16, {.activation = Activation::kGelu}),
                  Dropout(0.5), Dense(8, {.activation = Activation::kSelu}),
                  Dense(3, {.activation = Activation::kSoftmax})});
  EXPECT_THAT(Differences(model, {DrawnTensor(1, {5, 7})}), ElementsAre());
}

TEST_F(OnnxModelsTest, CnnWithBatchNormalization) {
  Model model = Sequential(
      {Input({13, 11, 3}),
       Conv2D(8, 3, {.strides = 2, .padding = Padding::kSame}),
       BatchNormalization(), ReLU(), MaxPooling2D(2),
       DepthwiseConv2D(3, {.padding = Padding::kSame, .depth_multiplier = 2}),
       BatchNormalization(), LeakyReLU(), Flatten(), BatchNormalization(),
       Dense(4)});
  EXPECT_THAT(Differences(model, {DrawnTensor(2, {3, 13, 11, 3})}),
              ElementsAre());
}

// Padding, pooling and resizing of images whose extents are known only at run
// time.
TEST_F(OnnxModelsTest, CnnOfUnknownExtents) {
  const LayerOutput x = Input({Shape::kUnknown, Shape::kUnknown, 2});
  const LayerOutput y =
      Conv2D(3, {3, 2}, {.strides = 2, .padding = Padding::kSame})(x);
  const LayerOutput z =
      AveragePooling2D(3, {.strides = 2, .padding = Padding::kSame})(y);
  Model model({x}, {GlobalMaxPooling2D()(z), Resizing(4, 5)(z)});
  EXPECT_THAT(Differences(model, {DrawnTensor(3, {2, 9, 10, 2})}),
              ElementsAre());
}

// Halves the size: each pixel is sampled between two.
TEST_F(OnnxModelsTest, ResizingToTheNearestPixel) {
  Model model =
      Sequential({Input({8, 6, 2}),
                  Resizing(4, 3, {.interpolation = Interpolation::kNearest})});
  EXPECT_THAT(Differences(model, {DrawnTensor(14, {2, 8, 6, 2})}),
              ElementsAre());
}

TEST_F(OnnxModelsTest, MobileNetV2) {
  Model model = applications::MobileNetV2(
      {.input_shape = {64, 64, 3}, .alpha = 0.35, .classes = 10});
  EXPECT_THAT(Differences(model, {DrawnTensor(4, {2, 64, 64, 3})}),
              ElementsAre());
}

TEST_F(OnnxModelsTest, ResNet50) {
  Model model =
      applications::ResNet50({.input_shape = {64, 64, 3}, .classes = 10});
  EXPECT_THAT(Differences(model, {DrawnTensor(5, {2, 64, 64, 3})}),
              ElementsAre());
}

TEST_F(OnnxModelsTest, EfficientNetB0) {
  Model model =
      applications::EfficientNetB0({.input_shape = {64, 64, 3}, .classes = 10});
  EXPECT_THAT(Differences(model, {DrawnTensor(6, {2, 64, 64, 3}, 127, 127)}),
              ElementsAre());
}

// Returns recurrent layers, each with a name.
std::vector<std::pair<std::string, LayerPtr>> RecurrentLayers() {
  return {
      {"SimpleRNN", SimpleRNN(4, {.sequence = {.return_sequences = true}})},
      {"SimpleRNN relu", SimpleRNN(4, {.activation = Activation::kRelu})},
      {"SimpleRNN gelu", SimpleRNN(4, {.activation = Activation::kGelu})},
      {"LSTM", LSTM(5, {.sequence = {.return_sequences = true}})},
      {"LSTM last", LSTM(5, {.sequence = {.return_state = true}})},
      {"LSTM backwards",
       LSTM(5, {.sequence = {.return_sequences = true, .go_backwards = true}})},
      {"LSTM hard_sigmoid",
       LSTM(5, {.recurrent_activation = Activation::kHardSigmoid})},
      {"LSTM without bias", LSTM(3, {.use_bias = false})},
      {"LSTM silu",
       LSTM(3, {.activation = Activation::kSilu,
                .sequence = {.return_sequences = true, .go_backwards = true}})},
      {"GRU", GRU(4, {.sequence = {.return_sequences = true}})},
      {"GRU reset before", GRU(4, {.reset_after = false})},
      {"GRU softsign",
       GRU(4, {.activation = Activation::kSoftsign, .reset_after = false})},
      {"GRU without bias", GRU(4, {.use_bias = false})},
      {"Bidirectional LSTM",
       Bidirectional(LSTM(3, {.sequence = {.return_sequences = true}}))},
      {"Bidirectional GRU", Bidirectional(GRU(3))},
  };
}

TEST_F(OnnxModelsTest, RecurrentLayersOfAnyLength) {
  for (const auto& [name, layer] : RecurrentLayers()) {
    SCOPED_TRACE(name);
    const LayerOutput x = Input({Shape::kUnknown, 3});
    Model model({x}, layer.CallAll({x}));
    EXPECT_THAT(Differences(model, {DrawnTensor(7, {2, 6, 3})}), ElementsAre());
  }
}

// Masked steps are at the end of rows and in between.
TEST_F(OnnxModelsTest, RecurrentLayersWithMasks) {
  for (const auto& [name, layer] : RecurrentLayers()) {
    SCOPED_TRACE(name);
    const LayerOutput x = Input({Shape::kUnknown}, {.dtype = DType::kInt64});
    const LayerOutput rows = Embedding(9, 3, {.mask_zero = true})(x);
    Model model({x}, layer.CallAll({rows}));
    EXPECT_THAT(Differences(model, {Tokens({4, 6}, 9, 4)}), ElementsAre());
  }
}

TEST_F(OnnxModelsTest, StackedRecurrentLayersWithStates) {
  const LayerOutput x = Input({Shape::kUnknown, 3});
  const LayerOutputs encoded =
      LSTM(4, {.sequence = {.return_sequences = true, .return_state = true}})
          .CallAll({x});
  const LayerOutput decoded = LSTM(4, {.sequence = {.return_sequences = true}})(
      {encoded[0], encoded[1], encoded[2]});
  Model model({x}, {Dense(2)(GRU(3)(decoded)), decoded});
  EXPECT_THAT(Differences(model, {DrawnTensor(8, {3, 5, 3})}), ElementsAre());
}

TEST_F(OnnxModelsTest, TransformerOfAnEmbedding) {
  const LayerOutput tokens = Input({8}, {.dtype = DType::kInt32});
  LayerOutput x = Embedding(20, 12, {.mask_zero = true})(tokens);
  const LayerOutput attended =
      MultiHeadAttention(3, 4, {.use_causal_mask = true})({x, x});
  x = LayerNormalization()(Add()({x, attended}));
  const LayerOutput hidden = Dense(24, {.activation = Activation::kGelu})(x);
  x = LayerNormalization({.epsilon = 1e-5})(Add()({x, Dense(12)(hidden)}));
  const LayerOutput pooled = GlobalAveragePooling1D()(x);
  Model model({tokens},
              {Dense(2, {.activation = Activation::kSoftmax})(pooled)});
  Tensor ids(DType::kInt32, {3, 8});
  const Tensor wide = Tokens({3, 8}, 20, 6);
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.mutable_flat<int32_t>()[i] =
        static_cast<int32_t>(wide.flat<int64_t>()[i]);
  }
  EXPECT_THAT(Differences(model, {ids}), ElementsAre());
}

TEST_F(OnnxModelsTest, TextClassifier) {
  Model model = Sequential({Input({Shape::kUnknown}, {.dtype = DType::kInt64}),
                            Embedding(50, 16, {.mask_zero = true}),
                            Bidirectional(LSTM(8)),
                            Dense(8, {.activation = Activation::kRelu}),
                            Dense(1, {.activation = Activation::kSigmoid})});
  EXPECT_THAT(Differences(model, {Tokens({4, 9}, 50, 7)}), ElementsAre());
}

TEST_F(OnnxModelsTest, SeveralInputsAndOutputs) {
  const LayerOutput image = Input({8, 8, 1}, {.name = "image"});
  const LayerOutput numbers = Input({3}, {.name = "numbers"});
  const LayerOutput category =
      Input({1}, {.dtype = DType::kInt64, .name = "category"});
  const LayerOutput seen = GlobalAveragePooling2D()(
      Conv2D(4, 3, {.activation = Activation::kRelu})(image));
  const LayerOutput known = Flatten()(Embedding(5, 2)(category));
  const LayerOutput joined = Concatenate()({seen, numbers, known});
  Model model(
      {image, numbers, category},
      {Dense(1, {.name = "price"})(joined),
       Dense(3, {.activation = Activation::kSoftmax, .name = "kind"})(joined),
       joined});
  Tensor categories(DType::kInt64, {2, 1});
  categories.mutable_flat<int64_t>()[0] = 4;
  categories.mutable_flat<int64_t>()[1] = 0;
  EXPECT_THAT(Differences(model, {DrawnTensor(9, {2, 8, 8, 1}),
                                  DrawnTensor(10, {2, 3}), categories}),
              ElementsAre());
}

TEST_F(OnnxModelsTest, UNet) {
  const LayerOutput x = Input({16, 16, 3});
  const auto conv = [](int64_t filters, LayerOutput y) {
    return BatchNormalization()(Conv2D(
        filters, 3,
        {.padding = Padding::kSame, .activation = Activation::kRelu})(y));
  };
  const LayerOutput high = conv(4, x);
  const LayerOutput low = conv(8, MaxPooling2D(2)(high));
  const LayerOutput up =
      Conv2DTranspose(4, 3, {.strides = 2, .padding = Padding::kSame})(low);
  const LayerOutput joined = Concatenate()({up, high, UpSampling2D(2)(low)});
  Model model(
      {x},
      {Conv2D(2, 1, {.activation = Activation::kSoftmax})(conv(4, joined))});
  EXPECT_THAT(Differences(model, {DrawnTensor(11, {2, 16, 16, 3})}),
              ElementsAre());
}

TEST_F(OnnxModelsTest, OneDimensionalConvolutions) {
  Model model = Sequential(
      {Input({20, 3}), Conv1D(6, 3, {.padding = Padding::kSame}),
       BatchNormalization(), MaxPooling1D(2),
       Conv1D(4, 3, {.dilation_rate = 2}), GlobalAveragePooling1D()});
  EXPECT_THAT(Differences(model, {DrawnTensor(12, {2, 20, 3})}), ElementsAre());
}

// Doubles until the sum of a row exceeds 100, negates if the first value is
// positive, and adds up.
class Loops : public Layer {
 public:
  Value Call(Value x, const CallContext&) override {
    const std::vector<Value> doubled = While(
        {x},
        [](const std::vector<Value>& carry) {
          return Max(Sum(Abs(carry[0]), {1})) < 100;
        },
        [](const std::vector<Value>& carry) {
          return std::vector<Value>{carry[0] * 2};
        },
        {.maximum_iterations = 20});
    const std::vector<Value> chosen = Cond(
        Max(x) > 0, [&] { return std::vector<Value>{-doubled[0]}; },
        [&] { return std::vector<Value>{doubled[0]}; });
    const Value rows = Transpose(chosen[0]);
    const Value first = ZerosLike(Squeeze(Slice(rows, {0, 0}, {1, -1}), {0}));
    const ScanStep sums =
        Scan({first}, {rows},
             [&](const ScanStep& step) {
               const Value sum = step.carry[0] + step.rows[0];
               return ScanStep{.carry = {sum}, .rows = {sum * 0.5}};
             },
             {.reverse = true});
    return Transpose(sums.rows[0]) + ExpandDims(sums.carry[0], 1);
  }
};

TEST_F(OnnxModelsTest, BranchesAndLoops) {
  Model model(std::make_shared<Loops>());
  EXPECT_THAT(Differences(model, {DrawnTensor(13, {3, 4})}), ElementsAre());
}

}  // namespace
}  // namespace muster
