#include "common/learn/train/keras/keras_compile_config.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/structure.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_argument_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LayerPtr OneOutput() {
  LayerPtr model = Sequential({Input({4}), Dense(3)}, {.name = "y"});
  model->SetPath("");
  return model;
}

absl::StatusOr<std::optional<CompileOptions>> Read(const std::string& config) {
  return CompileOptionsFromKeras({{"compile_config", KerasJson::parse(config)}},
                                 *OneOutput());
}

TEST(KerasCompileConfigTest, EveryLossAndMetricHasAForm) {
  const KerasJson defaults = KerasJson::object();
  for (const LossKind& kind : kLossKinds) {
    KerasArgumentReader reader("test", defaults);
    EXPECT_OK(KerasCompileConfig({.loss = kind.make(reader)}).status())
        << kind.name << " does not remember its options: WithOptions()";
  }
  for (const MetricKind& kind : kMetricKinds) {
    KerasArgumentReader reader("test", defaults);
    EXPECT_OK(KerasCompileConfig({.metrics = {kind.make(reader)}}).status())
        << kind.name << " does not remember its options: WithOptions()";
  }
}

TEST(KerasCompileConfigTest, ReadsWhatItWrites) {
  ASSERT_OK_AND_ASSIGN(
      const KerasJson written,
      KerasCompileConfig(
          {.loss = BinaryCrossentropy({.label_smoothing = 0.25}),
           .metrics = {Auc({.num_thresholds = 20}).Named("area")},
           .steps_per_execution = 3}));
  EXPECT_EQ(written["loss"]["config"]["label_smoothing"], 0.25);
  ASSERT_OK_AND_ASSIGN(const std::optional<CompileOptions> read,
                       Read(written.dump()));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->loss.name(), "binary_crossentropy");
  ASSERT_EQ(read->metrics.size(), 1u);
  EXPECT_EQ(read->metrics[0].name(), "area");
  EXPECT_EQ(read->metrics[0].kind(), "auc");
  EXPECT_EQ(read->steps_per_execution, 3);
  EXPECT_THAT(KerasCompileConfig(*read), IsOkAndHolds(written));
}

// As Keras 3.15 writes them.
TEST(KerasCompileConfigTest, ReadsMetricsThatAreLists) {
  ASSERT_OK_AND_ASSIGN(const std::optional<CompileOptions> read, Read(R"({
    "loss": {"module": "keras.losses", "class_name": "CategoricalCrossentropy",
             "config": {"name": "categorical_crossentropy",
                        "reduction": "sum_over_batch_size",
                        "from_logits": false, "label_smoothing": 0.0,
                        "axis": 1}, "registered_name": null},
    "metrics": [
      {"module": "keras.metrics", "class_name": "AUC",
       "config": {"name": "auc", "dtype": "float32", "num_thresholds": 4,
                  "curve": "PRGAIN", "summation_method": "interpolation",
                  "multi_label": true, "num_labels": 2,
                  "label_weights": {"class_name": "__tensor__",
                                    "config": {"value": [1.0, 2.0],
                                               "dtype": "float32"}},
                  "from_logits": false, "thresholds": [0.2, 0.7]},
       "registered_name": null},
      {"module": "keras.metrics", "class_name": "F1Score",
       "config": {"name": "f1_score", "dtype": "float32", "average": null,
                  "threshold": null}, "registered_name": null},
      {"module": "keras.metrics", "class_name": "Precision",
       "config": {"name": "precision", "dtype": "float32",
                  "thresholds": [0.2, 0.5], "top_k": null, "class_id": null},
       "registered_name": null},
      {"module": "keras.metrics", "class_name": "Recall",
       "config": {"name": "recall", "dtype": "float32", "thresholds": 0.5,
                  "top_k": null, "class_id": null}, "registered_name": null},
      {"module": "keras.metrics", "class_name": "R2Score",
       "config": {"name": "r2_score", "dtype": "float32",
                  "class_aggregation": null, "num_regressors": 0},
       "registered_name": null}]})"));
  ASSERT_TRUE(read.has_value());
  std::vector<bool> are_lists;
  for (const Metric& metric : read->metrics) {
    are_lists.push_back(metric.is_list());
  }
  EXPECT_THAT(are_lists, ElementsAre(false, true, true, false, true));
  ASSERT_OK_AND_ASSIGN(const KerasJson written, KerasCompileConfig(*read));
  EXPECT_EQ(written["loss"]["config"]["axis"], 1);
  const KerasJson& metrics = written["metrics"];
  const KerasJson& auc = metrics[0]["config"];
  EXPECT_EQ(auc["label_weights"], KerasJson::parse("[1.0, 2.0]"));
  EXPECT_EQ(auc["thresholds"], KerasJson::parse("[0.2, 0.7]"));
  EXPECT_EQ(auc["curve"], "PRGAIN");
  EXPECT_EQ(auc["num_labels"], 2);
  EXPECT_TRUE(metrics[1]["config"]["average"].is_null());
  EXPECT_EQ(metrics[2]["config"]["thresholds"], KerasJson::parse("[0.2, 0.5]"));
  EXPECT_EQ(metrics[3]["config"]["thresholds"], 0.5);
  EXPECT_TRUE(metrics[4]["config"]["class_aggregation"].is_null());
  EXPECT_THAT(Read(R"({"loss": "mse", "metrics": [
               {"module": "keras.metrics", "class_name": "Recall",
                "config": {"thresholds": [0.5, 1.5]}}]})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("thresholds must be in [0, 1], got 1.5")));
}

// Of Keras' metrics, this one has no axis.
TEST(KerasCompileConfigTest, TheNumberOfThresholdsIsBounded) {
  for (const char* metric :
       {R"("AUC", "config": {)",
        R"("PrecisionAtRecall", "config": {"recall": 0.5, )"}) {
    EXPECT_THAT(Read(absl::StrCat(
                    R"({"loss": "mse", "metrics": [{"module": "keras.metrics",
                        "class_name": )",
                    metric, R"("num_thresholds": 2147483648}}]})")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("num_thresholds must be at most 1000000, "
                                   "got 2147483648")));
  }
}

TEST(KerasCompileConfigTest, AMetricHasTheArgumentsOfItsClass) {
  ASSERT_OK_AND_ASSIGN(
      const KerasJson written,
      KerasCompileConfig({.loss = MeanSquaredError(),
                          .metrics = {BinaryCrossentropy(),
                                      CategoricalCrossentropy({.axis = 1})}}));
  EXPECT_FALSE(written["metrics"][0]["config"].contains("axis"));
  EXPECT_EQ(written["metrics"][1]["config"]["axis"], 1);
  EXPECT_THAT(
      KerasCompileConfig({.metrics = {BinaryCrossentropy({.axis = 1})}}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("has no axis")));
}

TEST(KerasCompileConfigTest, KnowsShortNames) {
  ASSERT_OK_AND_ASSIGN(const std::optional<CompileOptions> read,
                       Read(R"({"optimizer": "rmsprop", "loss": "mse",
               "metrics": ["mae", "accuracy"]})"));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->optimizer.message().has_rmsprop());
  EXPECT_EQ(read->loss.name(), "mean_squared_error");
  ASSERT_EQ(read->metrics.size(), 2u);
  EXPECT_EQ(read->metrics[0].name(), "mae");
  EXPECT_EQ(read->metrics[0].kind(), "mean_absolute_error");
  EXPECT_EQ(read->metrics[1].name(), "accuracy");
  EXPECT_EQ(read->metrics[1].kind(), "accuracy");
  // As Keras writes it.
  ASSERT_OK_AND_ASSIGN(const KerasJson written, KerasCompileConfig(*read));
  EXPECT_EQ(written["metrics"][1], "accuracy");
}

TEST(KerasCompileConfigTest, TheClassAccuracyIsNotTheName) {
  EXPECT_THAT(Read(R"({"loss": "crossentropy",
                       "metrics": [{"module": "keras.metrics",
                                    "class_name": "Accuracy", "config": {}}]})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no metric Accuracy")));
}

TEST(KerasCompileConfigTest, NamesWhatMusterDoesNotHave) {
  EXPECT_THAT(Read(R"({"loss": "mean_squared_eror"})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no loss mean_squared_eror")));
  EXPECT_THAT(Read(R"({"loss": {"z": "mse"}})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there is no output z; the model's outputs")));
  const Loss own("own", [](Value, Value y_pred) { return y_pred; });
  EXPECT_THAT(
      KerasCompileConfig({.loss = own}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("loss own")));
}

// Losses and metrics are nested as the outputs are.
TEST(KerasCompileConfigTest, FollowsTheStructureOfOutputs) {
  const LayerOutput x = Input({4}, {.name = "x"});
  const LayerPtr layers =
      Functional(x,
                 {Dense(1, {.name = "b"})(x), Dense(1, {.name = "c"})(x),
                  Dense(1, {.name = "a"})(x)},
                 {.output_structure = Structure::Dictionary(
                      {{"up", Structure()}, {"down", Structure::Flat(2)}})});
  const KerasJson config = KerasJson::parse(R"({
      "loss": {"up": "mse", "down": ["mae", "mape"]},
      "metrics": {"up": ["mae"], "down": [["mse"], []]},
      "loss_weights": {"up": 2, "down": [0.5, 1]}})");
  ASSERT_OK_AND_ASSIGN(
      const auto read,
      CompileOptionsFromKeras({{"compile_config", config}}, *layers));
  ASSERT_EQ(read->losses.size(), 3u);
  EXPECT_EQ(read->losses[0].name(), "mean_absolute_error");
  EXPECT_EQ(read->losses[2].name(), "mean_squared_error");
  EXPECT_EQ(read->loss_weights, std::vector<double>({0.5, 1, 2}));
  ASSERT_EQ(read->output_metrics.size(), 3u);
  EXPECT_EQ(read->output_metrics[0][0].name(), "mse");
  EXPECT_TRUE(read->output_metrics[1].empty());
  ASSERT_OK_AND_ASSIGN(const KerasJson written,
                       KerasCompileConfig(*read, OutputStructureOf(*layers)));
  EXPECT_EQ(written["loss"]["up"]["class_name"], "MeanSquaredError");
  EXPECT_EQ(written["loss"]["down"].size(), 2u);
  EXPECT_EQ(written["loss_weights"]["down"], KerasJson::parse("[0.5, 1.0]"));
  EXPECT_EQ(written["metrics"]["up"][0]["config"]["name"], "mae");
  EXPECT_THAT(CompileOptionsFromKeras(
                  {{"compile_config", {{"loss", {{"upp", "mse"}}}}}}, *layers)
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(KerasCompileConfigTest, IsEmptyForModelsThatWereNotCompiled) {
  ASSERT_OK_AND_ASSIGN(const auto read, Read("{}"));
  EXPECT_FALSE(read.has_value());
}

}  // namespace
}  // namespace muster
