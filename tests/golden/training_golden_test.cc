// Training with each option of Keras gives the weights and logs of Keras.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/constraint.h"
#include "common/core/base/check.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/optimizer.pb.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/keras_config_reader.h"

namespace muster {
namespace {

constexpr double kTolerance = 1e-5;
constexpr int64_t kBatch = 4;

double NumberOr0(const nlohmann::json& json) {
  return json.is_null() ? 0 : json.get<double>();
}

Optimizer OptimizerOf(const nlohmann::json& config) {
  const auto integer = [&](const char* name) {
    return static_cast<int64_t>(NumberOr0(config.at(name)));
  };
  return Sgd(
      {.learning_rate = config.at("learning_rate").get<double>(),
       .momentum = config.at("momentum")},
      {.clipnorm = NumberOr0(config.at("clipnorm")),
       .clipvalue = NumberOr0(config.at("clipvalue")),
       .global_clipnorm = NumberOr0(config.at("global_clipnorm")),
       .gradient_accumulation_steps = integer("gradient_accumulation_steps"),
       .use_ema = config.at("use_ema"),
       .ema_momentum = config.at("ema_momentum"),
       .ema_overwrite_frequency = integer("ema_overwrite_frequency")});
}

// Returns the constraint of hidden/`weight`, or of words/embeddings.
Constraint ConstraintOf(const nlohmann::json& config, const char* weight) {
  const nlohmann::json constraints =
      config.value("constraints", nlohmann::json::object());
  if (!constraints.contains(weight)) return Constraint();
  const nlohmann::json& constraint = constraints.at(weight);
  KerasConfigReader reader(constraint.at(1));
  for (const ConstraintKind& kind : kConstraintKinds) {
    if (constraint.at(0) == std::string(kind.name)) return kind.make(reader);
  }
  MUSTER_CHECK(constraint.empty());
  return Constraint();
}

// Returns the activation of the last layer.
Activation ActivationOf(const nlohmann::json& config) {
  if (!config.contains("activation")) return Activation::kLinear;
  if (config.at("activation") == "sigmoid") return Activation::kSigmoid;
  MUSTER_CHECK(config.at("activation") == "softmax");
  return Activation::kSoftmax;
}

// Returns a model with a hidden layer and a layer for three classes.
Model Classifier(const nlohmann::json& config) {
  if (config.contains("embedding")) {
    const bool has_all_rows = config.at("embedding") == true;
    return Sequential(
        {Embedding(8, 3,
                   {.embeddings_constraint = ConstraintOf(config, "embeddings"),
                    .updates = has_all_rows ? EmbeddingUpdates::kAllRows
                                            : EmbeddingUpdates::kRowsOfBatch,
                    .name = "words"}),
         Flatten(), Dense(3, {.name = "logits"})});
  }
  const bool is_regularized = config.contains("regularizers");
  const Activation activation = ActivationOf(config);
  const bool is_saturated = activation != Activation::kLinear;
  const LayerPtr hidden = Dense(
      5, {.activation = is_saturated ? Activation::kLinear : Activation::kTanh,
          .kernel_regularizer =
              is_regularized ? L1L2({.l1 = 0.02, .l2 = 0.1}) : Regularizer(),
          .kernel_constraint = ConstraintOf(config, "kernel"),
          .bias_constraint = ConstraintOf(config, "bias"),
          .name = "hidden"});
  hidden->set_trainable(!config.contains("frozen"));
  return Sequential(
      {hidden,
       Dense(3, {.activation = activation,
                 .bias_regularizer = is_regularized ? L2(0.1) : Regularizer(),
                 .name = "logits"})});
}

CompileOptions ClassifierOptions(const nlohmann::json& config) {
  const Activation activation = ActivationOf(config);
  const bool from_logits = activation == Activation::kLinear;
  CompileOptions options{
      .loss = SparseCategoricalCrossentropy({.from_logits = from_logits}),
      .weighted_metrics = {SparseCategoricalAccuracy()}};
  if (config.contains("one_hot")) {
    options.loss = activation == Activation::kSigmoid
                       ? BinaryCrossentropy()
                       : CategoricalCrossentropy({.from_logits = from_logits});
    options.weighted_metrics = {CategoricalAccuracy()};
  }
  return options;
}

Model TwoOutputs() {
  const LayerOutput a = Input({3}, {.name = "a"});
  const LayerOutput b = Input({2}, {.name = "b"});
  const LayerOutput price = Dense(1, {.name = "price"})(a);
  const LayerOutput kind = Dense(3, {.name = "kind"})(b);
  return Model({a, b}, {price, kind});
}

CompileOptions TwoOutputsOptions() {
  return {
      .losses = {MeanSquaredError(),
                 SparseCategoricalCrossentropy({.from_logits = true})},
      .output_metrics = {{MeanAbsoluteError()}, {SparseCategoricalAccuracy()}}};
}

class TrainingGoldenTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(TrainingGoldenTest, MatchesKeras) {
  const GoldenCase& golden = GetParam();
  const nlohmann::json& config = golden.config;
  const bool has_two_outputs = golden.inputs.count("x_1") > 0;
  Model model = has_two_outputs ? TwoOutputs() : Classifier(config);
  CompileOptions options =
      has_two_outputs ? TwoOutputsOptions() : ClassifierOptions(config);
  options.optimizer = OptimizerOf(config.at("optimizer"));
  if (config.contains("loss_weights")) {
    options.loss_weights = config.at("loss_weights").get<std::vector<double>>();
  }
  ASSERT_OK(model.Compile(options));
  ASSERT_OK(has_two_outputs
                ? absl::OkStatus()
                : model.Build({golden.inputs.at("x").dtype(),
                               {Shape::kUnknown,
                                golden.inputs.at("x").shape().dim(1)}}));

  std::vector<Tensor> before;
  for (const Weight& weight : model.weights()) {
    before.push_back(golden.inputs.at(weight.name()));
  }
  ASSERT_OK(model.SetWeights(before));

  Element examples = {golden.inputs.at("x"), golden.inputs.at("y")};
  if (has_two_outputs) {
    examples = {golden.inputs.at("x"), golden.inputs.at("x_1"),
                golden.inputs.at("y"), golden.inputs.at("y_1")};
  }
  FitOptions fit{.epochs = 2, .verbose = Verbosity::kSilent};
  if (config.contains("class_weight")) {
    for (const nlohmann::json& pair : config.at("class_weight")) {
      fit.class_weight[pair.at(0)] = pair.at(1);
    }
  }
  ASSERT_OK_AND_ASSIGN(
      const History history,
      model.Fit(Dataset::FromTensorSlices(examples).Batch(kBatch), fit));

  size_t log_count = 0;
  for (const auto& [name, expected] : golden.outputs) {
    if (!absl::StartsWith(name, "history/")) continue;
    const std::string log(absl::StripPrefix(name, "history/"));
    ++log_count;
    ASSERT_EQ(history.history.count(log), 1u) << log;
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      const double value = expected.flat<float>()[epoch];
      EXPECT_NEAR(history.history.at(log)[epoch], value,
                  kTolerance * std::max(1.0, std::abs(value)))
          << log << " of epoch " << epoch;
    }
  }
  EXPECT_EQ(history.history.size(), log_count);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, model.GetWeights());
  for (size_t i = 0; i < after.size(); ++i) {
    const std::string& name = model.weights()[i].name();
    EXPECT_EQ(DescribeDifference(after[i], golden.outputs.at(name), kTolerance),
              "")
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, TrainingGoldenTest,
                         ::testing::ValuesIn(ReadGoldenCases("training.json")),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
