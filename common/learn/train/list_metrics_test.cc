// Tests how metrics with lists of numbers appear in logs, files and progress
// lines.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/csv_logger.h"
#include "common/learn/train/model.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The predictions are the inputs. The prediction of the second example is
// wrong.
Element Examples() {
  return {Tensor::FromValues<float>({4, 2}, {0.9f, 0.1f, 0.8f, 0.2f,  //
                                             0.1f, 0.9f, 0.4f, 0.6f}),
          Tensor::FromValues<float>({4, 2}, {1, 0, 0, 1, 0, 1, 0, 1})};
}

Model Untrained() {
  return Sequential({Input({2}), Dense(2, {.use_bias = false})});
}

// Compiles the model and makes it predict its input.
absl::Status Prepare(Model& model, Strategy& strategy) {
  RETURN_IF_ERROR(model.Compile(
      strategy,
      {.optimizer = Sgd({.learning_rate = 0.0}),
       .loss = MeanSquaredError(),
       .metrics = {F1Score(), Recall({.thresholds = {0.5, 0.7, 0.95}})}}));
  return model.SetWeights({Tensor::FromValues<float>({2, 2}, {1, 0, 0, 1})});
}

std::vector<std::unique_ptr<Strategy>> OneAndThreeReplicas() {
  std::vector<std::unique_ptr<Strategy>> strategies;
  strategies.push_back(OneDeviceStrategy::Create({.thread_count = 1}).value());
  strategies.push_back(
      MirroredStrategy::Create(
          {.devices = {"cpu:0", "cpu:1", "cpu:2"}, .thread_count = 1})
          .value());
  return strategies;
}

// Class 0: precision 1/2, recall 1. Class 1: precision 1, recall 2/3.
TEST(ListMetricsTest, LogsHaveEachNumber) {
  for (const std::unique_ptr<Strategy>& strategy : OneAndThreeReplicas()) {
    Model model = Untrained();
    ASSERT_OK(Prepare(model, *strategy));
    ASSERT_OK_AND_ASSIGN(
        const History history,
        model.Fit(Examples(), {.batch_size = 4,
                               .epochs = 2,
                               .validation_data = Examples(),
                               .verbose = Verbosity::kSilent}));
    for (const char* prefix : {"", "val_"}) {
      const auto values = [&](const char* name) {
        return history.history.at(absl::StrCat(prefix, name));
      };
      const auto near = [](double x) { return DoubleNear(x, 1e-5); };
      EXPECT_THAT(values("f1_score[0]"),
                  ElementsAre(near(2.0 / 3), near(2.0 / 3)));
      EXPECT_THAT(values("f1_score[1]"), ElementsAre(near(0.8), near(0.8)));
      EXPECT_THAT(values("recall[0]"), ElementsAre(0.75, 0.75));
      EXPECT_THAT(values("recall[1]"), ElementsAre(0.5, 0.5));
      EXPECT_THAT(values("recall[2]"), ElementsAre(0, 0));
    }
    EXPECT_EQ(history.history.count("recall"), 0);
  }
}

TEST(ListMetricsTest, FilesHaveLists) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/log.csv";
  CsvLogger csv({.filename = path, .separator = ";"});
  ASSERT_OK_AND_ASSIGN(const auto strategy, OneDeviceStrategy::Create());
  Model model = Untrained();
  ASSERT_OK(Prepare(model, *strategy));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Examples(), {.batch_size = 4,
                                              .epochs = 2,
                                              .verbose = Verbosity::kSilent,
                                              .callbacks = {&csv}}));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("epoch;f1_score;loss;recall;val_f1_score"));
  EXPECT_THAT(text.str(), HasSubstr(";[0.75, 0.5, 0.0];NA"));

  RunSummary summary{.history = history};
  for (const auto& [name, values] : history.history) {
    summary.final[name] = values.back();
  }
  const nlohmann::json json = nlohmann::json::parse(ToJson(summary));
  EXPECT_EQ(json["history"]["recall"],
            nlohmann::json::parse("[[0.75, 0.5, 0.0], [0.75, 0.5, 0.0]]"));
  EXPECT_EQ(json["history"]["f1_score"][1].size(), 2);
  EXPECT_EQ(json["final"]["recall"], nlohmann::json::parse("[0.75, 0.5, 0.0]"));
  EXPECT_FALSE(json["history"].contains("recall[0]"));
}

// As in Keras.
TEST(ListMetricsTest, ALineOfProgressHasTheirMean) {
  ASSERT_OK_AND_ASSIGN(const auto strategy, OneDeviceStrategy::Create());
  Model model = Untrained();
  ASSERT_OK(Prepare(model, *strategy));
  std::stringstream output;
  ASSERT_OK(model
                .Fit(Examples(), {.batch_size = 4,
                                  .verbose = Verbosity::kLines,
                                  .output = &output})
                .status());
  EXPECT_THAT(output.str(), HasSubstr(" - f1_score: 0.7333 - loss:"));
  EXPECT_THAT(output.str(), HasSubstr(" - recall: 0.4167"));
}

}  // namespace
}  // namespace muster
