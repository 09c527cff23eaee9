// Losses and metrics mask padding in the outputs like Keras.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/check.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/image/rescaling.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

constexpr double kTolerance = 2e-5;
constexpr int64_t kBatch = 4;
constexpr int64_t kTimes = 5;
constexpr int64_t kWords = 7;
constexpr int64_t kTags = 3;
constexpr int64_t kWidth = 4;
constexpr int kEpochs = 2;

LayerOutput Ids() {
  return Input({kTimes}, {.dtype = DType::kInt32, .name = "ids"});
}

LayerOutput Words(const LayerOutput& ids) {
  return Embedding(kWords, kWidth, {.mask_zero = true})(ids);
}

// The layers between the words and their tags; see cases/masks.py.
LayerOutput Encode(const std::string& kind, const LayerOutput& ids) {
  LayerOutput x = Words(ids);
  if (kind == "lstm") {
    return LSTM(kWidth, {.sequence = {.return_sequences = true}})(x);
  }
  if (kind == "gru") {
    return GRU(kWidth, {.sequence = {.return_sequences = true}})(x);
  }
  if (kind == "merged") {
    x = Add()({x, Dense(kWidth)(x)});
    x = LayerNormalization()(Rescaling(0.5)(x));
    x = Concatenate()({ReLU({.negative_slope = 0.1})(x), x});
    return Activate(Activation::kTanh)(x);
  }
  if (kind == "time_joined") {
    return Concatenate({.axis = 1})({x, Embedding(kWords, kWidth)(ids)});
  }
  if (kind == "regularized") {
    return Dense(kWidth, {.kernel_regularizer = L2(0.1)})(x);
  }
  if (kind == "normalized") return BatchNormalization({.momentum = 0.8})(x);
  if (kind == "half_masked") {
    return Add()({x, Embedding(kWords, kWidth)(ids)});
  }
  if (kind == "attention") {
    x = MultiHeadAttention(2, 3, {.use_causal_mask = true})({x, x});
  } else if (kind == "minimum") {
    x = Minimum()({x, Dense(kWidth)(x)});
  } else if (kind == "half_maximum") {
    x = Maximum()({Embedding(kWords, kWidth)(ids), x, Dense(kWidth)(x)});
  } else if (kind == "product") {
    x = Multiply()({x, Dense(kWidth)(x)});
  } else {
    MUSTER_CHECK(kind == "mask_ends");
  }
  return Reshape({kTimes, kWidth})(x);
}

Model MakeModel(const std::string& kind) {
  if (kind == "binary") {
    return Sequential({Embedding(kWords, kWidth, {.mask_zero = true}),
                       Dense(1, {.activation = Activation::kSigmoid})});
  }
  const LayerOutput ids = Ids();
  if (kind != "two_outputs") {
    return Model({ids}, {Dense(kTags, {.activation = Activation::kSoftmax})(
                            Encode(kind, ids))});
  }
  const LayerOutput x = Encode("gru", ids);
  const LayerOutput tags =
      Dense(kTags, {.activation = Activation::kSoftmax, .name = "tags"})(x);
  const LayerOutput length = Dense(1, {.name = "length"})(GRU(kWidth)(x));
  return Model({ids}, {tags, length});
}

CompileOptions MakeOptions(const nlohmann::json& config) {
  const std::string kind = config.at("model");
  if (kind == "binary") {
    return {.optimizer = Sgd({.learning_rate = 0.5}),
            .loss = BinaryCrossentropy(),
            .metrics = {Auc({.num_thresholds = 50}), BinaryAccuracy()}};
  }
  if (kind == "two_outputs") {
    return {
        .optimizer = Sgd({.learning_rate = 0.2}),
        .losses = {SparseCategoricalCrossentropy(), MeanSquaredError()},
        .output_metrics = {{SparseCategoricalAccuracy()},
                           {MeanAbsoluteError()}},
        .loss_weights = config.at("loss_weights").get<std::vector<double>>()};
  }
  if (config.contains("class_weight")) {
    return {.optimizer = Sgd({.learning_rate = 0.5}),
            .loss = CategoricalCrossentropy(),
            .metrics = {CategoricalAccuracy()},
            .weighted_metrics = {CategoricalCrossentropy()}};
  }
  SparseCrossentropyOptions loss;
  const bool is_sum = config.contains("reduction");
  if (is_sum) loss.reduction = Reduction::kSum;
  if (config.contains("ignore_class")) {
    loss.ignore_class = config["ignore_class"];
  }
  return {.optimizer = Sgd({.learning_rate = is_sum ? 0.05 : 0.5}),
          .loss = SparseCategoricalCrossentropy(loss),
          .metrics = {SparseCategoricalAccuracy()},
          .weighted_metrics = {SparseCategoricalCrossentropy()}};
}

Element ExamplesOf(const GoldenCase& golden) {
  Element element;
  for (const char* const name :
       {"x", "y", "y_1", "sample_weight", "sample_weight_1"}) {
    const auto found = golden.inputs.find(name);
    if (found != golden.inputs.end()) element.push_back(found->second);
  }
  return element;
}

// Compares `logs` with the golden outputs under `prefix`. Neither may have
// further entries.
void ExpectLogs(const GoldenCase& golden, absl::string_view prefix,
                const Logs& logs) {
  size_t count = 0;
  for (const auto& [path, expected] : golden.outputs) {
    absl::string_view name = path;
    if (!absl::ConsumePrefix(&name, prefix)) continue;
    ++count;
    const auto found = logs.find(std::string(name));
    ASSERT_NE(found, logs.end()) << path;
    EXPECT_NEAR(found->second, expected.flat<float>()[0], kTolerance) << path;
  }
  EXPECT_EQ(logs.size(), count) << prefix;
}

void ExpectHistory(const GoldenCase& golden, const History& history) {
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (const auto& [path, expected] : golden.outputs) {
      absl::string_view name = path;
      if (!absl::ConsumePrefix(&name, "history/")) continue;
      const auto found = history.history.find(std::string(name));
      ASSERT_NE(found, history.history.end()) << path;
      EXPECT_NEAR(found->second[epoch], expected.flat<float>()[epoch],
                  kTolerance)
          << path << " of epoch " << epoch;
    }
  }
}

class MasksGoldenTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(MasksGoldenTest, MatchesKeras) {
  const GoldenCase& golden = GetParam();
  const nlohmann::json& config = golden.config;
  Model model = MakeModel(config.at("model"));
  ASSERT_OK(model.Compile(MakeOptions(config)));
  ASSERT_OK(model.Build({DType::kInt32, {Shape::kUnknown, kTimes}}));
  std::vector<Tensor> before;
  for (size_t i = 0; i < model.weights().size(); ++i) {
    before.push_back(golden.inputs.at(absl::StrCat("weight_", i)));
  }
  ASSERT_OK(model.SetWeights(before));

  const Element examples = ExamplesOf(golden);
  Element first;
  for (const Tensor& component : examples) {
    first.push_back(component.SliceRows(0, kBatch));
  }
  ASSERT_OK_AND_ASSIGN(const Logs batch, model.TestOnBatch(first));
  ExpectLogs(golden, "batch/", batch);
  const Dataset data = Dataset::FromTensorSlices(examples).Batch(kBatch);
  ASSERT_OK_AND_ASSIGN(const Logs test,
                       model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  ExpectLogs(golden, "test/", test);

  FitOptions fit{.epochs = kEpochs, .verbose = Verbosity::kSilent};
  if (config.contains("class_weight")) {
    for (const nlohmann::json& pair : config.at("class_weight")) {
      fit.class_weight[pair.at(0)] = pair.at(1);
    }
  }
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(data, fit));
  ExpectHistory(golden, history);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, model.GetWeights());
  for (size_t i = 0; i < after.size(); ++i) {
    const std::string name = absl::StrCat("weight_", i);
    EXPECT_EQ(DescribeDifference(after[i], golden.outputs.at(name), kTolerance),
              "")
        << name << ", " << model.weights()[i].name();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MasksGoldenTest,
                         ::testing::ValuesIn(ReadGoldenCases("masks.json")),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
