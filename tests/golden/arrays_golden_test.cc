// Fit(), Evaluate(), Predict() and TrainOnBatch() on examples in memory give
// the weights, logs and predictions of Keras.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

constexpr double kTolerance = 1e-5;
constexpr int64_t kBatch = 4;

// Returns a model with a hidden layer and a layer for three classes, with the
// weights of the case.
Model CompiledModel(const GoldenCase& golden) {
  Model model =
      Sequential({Dense(5, {.activation = Activation::kTanh, .name = "hidden"}),
                  Dense(3, {.name = "logits"})});
  const nlohmann::json& optimizer = golden.config.at("optimizer");
  EXPECT_OK(model.Compile(
      {.optimizer =
           Sgd({.learning_rate = optimizer.at("learning_rate").get<double>(),
                .momentum = optimizer.at("momentum")}),
       .loss = SparseCategoricalCrossentropy({.from_logits = true}),
       .weighted_metrics = {SparseCategoricalAccuracy()}}));
  EXPECT_OK(model.Build({DType::kFloat32, {Shape::kUnknown, 3}}));
  std::vector<Tensor> before;
  for (const Weight& weight : model.weights()) {
    before.push_back(golden.inputs.at(weight.name()));
  }
  EXPECT_OK(model.SetWeights(before));
  return model;
}

Element ArraysOf(const GoldenCase& golden) {
  Element arrays = {golden.inputs.at("x"), golden.inputs.at("y")};
  const auto weights = golden.inputs.find("sample_weight");
  if (weights != golden.inputs.end()) arrays.push_back(weights->second);
  return arrays;
}

FitOptions FitOptionsOf(const nlohmann::json& config) {
  FitOptions options{.shuffle = false, .verbose = Verbosity::kSilent};
  if (config.contains("batch_size")) {
    options.batch_size = config.at("batch_size").get<int64_t>();
  }
  if (config.contains("steps_per_epoch")) {
    options.steps_per_epoch = config.at("steps_per_epoch").get<int64_t>();
  }
  options.epochs = config.at("epochs");
  options.validation_split = config.value("validation_split", 0.0);
  return options;
}

// Compares `logs` with the golden outputs whose names begin with `prefix`. Each
// log is a list of values.
template <typename Values>
void ExpectLogs(const GoldenCase& golden, absl::string_view prefix,
                const Values& logs) {
  size_t log_count = 0;
  for (const auto& [name, expected] : golden.outputs) {
    if (!absl::StartsWith(name, prefix)) continue;
    const std::string log(absl::StripPrefix(name, prefix));
    ++log_count;
    ASSERT_EQ(logs.count(log), 1u) << log;
    const std::vector<double>& got = logs.at(log);
    ASSERT_EQ(static_cast<int64_t>(got.size()), expected.element_count());
    const auto wanted = expected.template flat<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], kTolerance) << name << " " << i;
    }
  }
  EXPECT_GT(log_count, 0u);
  EXPECT_EQ(logs.size(), log_count);
}

using LogValues = std::map<std::string, std::vector<double>>;

void Append(const Logs& logs, LogValues* all) {
  for (const auto& [name, value] : logs) (*all)[name].push_back(value);
}

void Fit(const GoldenCase& golden, Model& model) {
  const Element arrays = ArraysOf(golden);
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(arrays, FitOptionsOf(golden.config)));
  ExpectLogs(golden, "history/", history.history);

  ASSERT_OK_AND_ASSIGN(const Logs evaluated,
                       model.Evaluate(arrays, {.batch_size = kBatch,
                                               .verbose = Verbosity::kSilent}));
  LogValues values;
  Append(evaluated, &values);
  ExpectLogs(golden, "evaluate/", values);

  ASSERT_OK_AND_ASSIGN(const Tensor predictions,
                       model.Predict({arrays[0]}, {.batch_size = kBatch}));
  EXPECT_EQ(DescribeDifference(predictions, golden.outputs.at("predictions"),
                               kTolerance),
            "");
}

void TrainBatchByBatch(const GoldenCase& golden, Model& model) {
  ClassWeights class_weight;
  for (const nlohmann::json& pair : golden.config.at("class_weight")) {
    class_weight[pair.at(0)] = pair.at(1);
  }
  const Element arrays = ArraysOf(golden);
  const int64_t example_count = arrays[0].shape().dim(0);
  LogValues values;
  for (int64_t begin = 0; begin < example_count; begin += kBatch) {
    Element batch;
    for (const Tensor& array : arrays) {
      batch.push_back(
          array.SliceRows(begin, std::min(begin + kBatch, example_count)));
    }
    ASSERT_OK_AND_ASSIGN(const Logs logs,
                         model.TrainOnBatch(batch, class_weight));
    Append(logs, &values);
  }
  ExpectLogs(golden, "batches/", values);
}

class ArraysGoldenTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(ArraysGoldenTest, MatchesKeras) {
  const GoldenCase& golden = GetParam();
  Model model = CompiledModel(golden);
  if (golden.config.contains("epochs")) {
    Fit(golden, model);
  } else {
    TrainBatchByBatch(golden, model);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, model.GetWeights());
  for (size_t i = 0; i < after.size(); ++i) {
    const std::string& name = model.weights()[i].name();
    EXPECT_EQ(DescribeDifference(after[i], golden.outputs.at(name), kTolerance),
              "")
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ArraysGoldenTest,
                         ::testing::ValuesIn(ReadGoldenCases("arrays.json")),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
