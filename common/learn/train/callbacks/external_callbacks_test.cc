#include "common/learn/train/callbacks/external_callbacks.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/callbacks/lambda_callback.h"
#include "common/learn/train/callbacks/testing/callback_process.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Folder() {
  return absl::StrCat(
      std::getenv("TEST_TMPDIR"), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
}

// Batches of `size`; the gradient of w in y = w * x is 2 * w.
Dataset Ones(int64_t count, int64_t size = 1) {
  return Dataset::FromTensorSlices(
             {Tensor::Full(DType::kFloat32, {count, 1}, 1.0),
              Tensor::Zeros(DType::kFloat32, {count, 1})})
      .Batch(size);
}

Model OneWeight(double weight = 1) {
  return Sequential(
      {Input({1}),
       Dense(1, {.use_bias = false, .kernel_initializer = Constant(weight)})});
}

CompileOptions WithSgd(double rate) {
  return {.optimizer = Sgd({.learning_rate = rate}),
          .loss = MeanSquaredError()};
}

float WeightOf(const Model& model) {
  return model.GetWeights().value()[0].flat<float>()[0];
}

ExternalCallbacksOptions With(std::vector<std::string> hooks) {
  return {.directory = Folder(), .hooks = std::move(hooks)};
}

absl::StatusOr<History> Fit(Model& model, const Dataset& data, int epochs,
                            std::vector<Callback*> callbacks) {
  return model.Fit(data, {.epochs = epochs,
                          .validation_data = Ones(1),
                          .verbose = Verbosity::kSilent,
                          .callbacks = std::move(callbacks)});
}

std::vector<std::string> HooksOf(const std::vector<Json>& events) {
  std::vector<std::string> hooks;
  for (const Json& event : events) {
    hooks.push_back(absl::StrCat(event["hook"].get<std::string>(), " ",
                                 event.value("number", -1)));
  }
  return hooks;
}

TEST(ExternalCallbacksTest, SendsTheHooksThatAreListed) {
  CallbackProcess process(Folder(), [](const Json&) { return Json::object(); });
  std::vector<std::string> all(std::begin(ExternalCallbacks::kHookNames),
                               std::end(ExternalCallbacks::kHookNames));
  ExternalCallbacks callbacks(With(all));
  EXPECT_TRUE(callbacks.watches_steps());
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  ASSERT_OK(Fit(model, Ones(2), 1, {&callbacks}).status());
  const std::vector<Json> events = process.Events();
  EXPECT_THAT(
      HooksOf(events),
      ElementsAre("train_begin 0", "epoch_begin 0", "train_batch_begin 0",
                  "train_batch_end 0", "train_batch_begin 1",
                  "train_batch_end 1", "test_begin 0", "test_batch_begin 0",
                  "test_batch_end 0", "test_end 0", "epoch_end 0"));
  // The weight is 1, 0.5 and 0.25.
  EXPECT_EQ(events[3]["logs"], Json({{"loss", 1.0}}));
  EXPECT_EQ(events[9]["logs"], Json({{"loss", 0.0625}}));
  EXPECT_EQ(events[10]["logs"], Json({{"loss", 0.625}, {"val_loss", 0.0625}}));
  EXPECT_EQ(events[10]["learning_rate"], 0.25);
  EXPECT_EQ(events[10]["iterations"], 2);
}

TEST(ExternalCallbacksTest, BatchHooksComeAtTheInterval) {
  CallbackProcess process(Folder(), [](const Json&) { return Json::object(); });
  ExternalCallbacksOptions options =
      With({"train_batch_begin", "train_batch_end"});
  options.batch_interval = 2;
  ExternalCallbacks callbacks(options);
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  ASSERT_OK(Fit(model, Ones(5), 1, {&callbacks}).status());
  EXPECT_THAT(HooksOf(process.Events()),
              ElementsAre("train_begin 0", "train_batch_begin 0",
                          "train_batch_end 1", "train_batch_begin 2",
                          "train_batch_end 3", "train_batch_begin 4"));
}

TEST(ExternalCallbacksTest, AnswersChangeRateLogsAndEnd) {
  CallbackProcess process(Folder(), [](const Json& event) -> Json {
    if (event["hook"] == "epoch_begin") return {{"learning_rate", 0.125}};
    if (event["hook"] != "epoch_end") return Json::object();
    return {{"logs", {{"score", event["number"]}, {"bad", "nan"}}},
            {"stop_training", event["number"] == 1}};
  });
  ExternalCallbacks callbacks(With({"epoch_begin", "epoch_end"}));
  EXPECT_FALSE(callbacks.watches_steps());
  std::vector<double> seen;
  LambdaCallback later({.on_epoch_end = [&](Model&, int, const Logs& logs) {
    seen.push_back(logs.at("score"));
    return absl::OkStatus();
  }});
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  ASSERT_OK_AND_ASSIGN(const History history,
                       Fit(model, Ones(1), 5, {&callbacks, &later}));
  EXPECT_THAT(history.epoch, ElementsAre(0, 1));
  EXPECT_THAT(history.history.at("score"), ElementsAre(0, 1));
  EXPECT_TRUE(std::isnan(history.history.at("bad")[0]));
  EXPECT_THAT(seen, ElementsAre(0, 1));
  EXPECT_FLOAT_EQ(WeightOf(model), 0.75 * 0.75);
}

// Asks for the weights after each epoch, and replaces them by `weights`.
CallbackProcess::Answer Replacing(std::string weights) {
  return [weights](const Json& event) -> Json {
    if (event["hook"] != "epoch_end") return Json::object();
    if (!event.contains("weights")) return {{"needs_weights", true}};
    Model model = OneWeight(0);
    model.Compile(WithSgd(0.25)).IgnoreError();
    const absl::Status loaded = model.LoadWeights(event["weights"]);
    if (!loaded.ok()) return {{"error", loaded.ToString()}};
    const float weight = WeightOf(model);
    model.SetWeights({Tensor::FromValues<float>({1, 1}, {weight * 8})})
        .IgnoreError();
    const absl::Status saved = model.SaveWeights(weights);
    if (!saved.ok()) return {{"error", saved.ToString()}};
    return {{"weights", weights}};
  };
}

TEST(ExternalCallbacksTest, WeightsAreSentAndReplaced) {
  CallbackProcess process(Folder(), Replacing(Folder() + "/new.weights.h5"));
  ExternalCallbacks callbacks(With({"epoch_end"}));
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  ASSERT_OK(Fit(model, Ones(1), 2, {&callbacks}).status());
  EXPECT_FLOAT_EQ(WeightOf(model), 0.5 * 8 * 0.5 * 8);
}

TEST(ExternalCallbacksTest, ReplicasInSyncAllDoWhatTheChiefIsTold) {
  const CallbackProcess::Answer replace =
      Replacing(Folder() + "/new.weights.h5");
  CallbackProcess process(Folder(), [replace](const Json& event) -> Json {
    Json answer = replace(event);
    if (event["hook"] == "epoch_begin") answer["learning_rate"] = 0.125;
    if (event.contains("weights")) answer["stop_training"] = true;
    return answer;
  });
  RunLocalWorkers(2, 1, {}, [&](int, SynchronousStrategy& strategy) {
    ExternalCallbacks callbacks(With({"epoch_begin", "epoch_end"}));
    Model model = OneWeight();
    ASSERT_OK(model.Compile(strategy, WithSgd(0.25)));
    ASSERT_OK_AND_ASSIGN(const History history,
                         model.Fit(Ones(2, 2), {.epochs = 3,
                                                .verbose = Verbosity::kSilent,
                                                .callbacks = {&callbacks}}));
    EXPECT_THAT(history.epoch, ElementsAre(0));
    EXPECT_FLOAT_EQ(WeightOf(model), 0.75 * 8);
  });
  EXPECT_THAT(HooksOf(process.Events()),
              ElementsAre("train_begin 0", "epoch_begin 0", "epoch_end 0",
                          "epoch_end 0"));
}

TEST(ExternalCallbacksTest, AnErrorEndsTraining) {
  CallbackProcess process(Folder(), [](const Json& event) -> Json {
    if (event["hook"] != "epoch_end") return Json::object();
    return {{"error", "a callback raised KeyError"}};
  });
  ExternalCallbacks callbacks(With({"epoch_end"}));
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  const absl::Status status = Fit(model, Ones(1), 1, {&callbacks}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(status.message()), HasSubstr("KeyError"));
}

TEST(ExternalCallbacksTest, RefusesInvalidAnswers) {
  const std::vector<std::pair<Json, std::string>> cases = {
      {{{"learning_rate", "fast"}}, "learning_rate: \"fast\""},
      {{{"learning_rate", -1}}, "-1"},
      {{{"stop_training", 1}}, "stop_training: 1; expected true or false"},
      {{{"logs", {1}}}, "logs: [1]; expected an object"},
      {{{"logs", {{"a", {1}}}}}, "logs.a: [1]; expected a number"},
      {{{"weights", "/nowhere.weights.h5"}}, "nowhere"}};
  for (const auto& [answer, wanted] : cases) {
    CallbackProcess process(Folder(),
                            [&answer = answer](const Json&) { return answer; });
    ExternalCallbacks callbacks(With({}));
    Model model = OneWeight();
    ASSERT_OK(model.Compile(WithSgd(0.25)));
    const absl::Status status = Fit(model, Ones(1), 1, {&callbacks}).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(wanted));
  }
}

TEST(ExternalCallbacksTest, WaitsUntilTheTimeout) {
  std::filesystem::create_directories(Folder());
  ExternalCallbacksOptions options = With({});
  options.timeout_seconds = 0.05;
  ExternalCallbacks callbacks(options);
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  const absl::Status status = Fit(model, Ones(1), 1, {&callbacks}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has not answered train_begin within 50ms"));
}

TEST(ExternalCallbacksTest, NeedsTheFolder) {
  ExternalCallbacks callbacks(With({}));
  Model model = OneWeight();
  ASSERT_OK(model.Compile(WithSgd(0.25)));
  const absl::Status status = Fit(model, Ones(1), 1, {&callbacks}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Folder()));
}

TEST(ExternalCallbacksTest, ChecksOptions) {
  const auto check = [](ExternalCallbacksOptions options) {
    return std::string(ExternalCallbacks::CheckOptions(options).message());
  };
  EXPECT_THAT(check({}), HasSubstr("directory is missing"));
  EXPECT_THAT(check({.directory = "a", .hooks = {"epoch"}}),
              HasSubstr("hooks has \"epoch\"; expected some of epoch_begin"));
  EXPECT_THAT(check({.directory = "a", .batch_interval = 0}),
              HasSubstr("batch_interval must be at least 1, got 0"));
  EXPECT_THAT(check({.directory = "a", .timeout_seconds = NAN}),
              HasSubstr("timeout_seconds must be above 0, got nan"));
  EXPECT_EQ(check({.directory = "a", .hooks = {"test_end"}}), "");
}

TEST(HookExchangeTest, IgnoresFilesAndAnswersOfEarlierProcesses) {
  Disk* const disk = Disk::Real();
  const std::string folder = Folder();
  std::filesystem::create_directories(folder);
  ASSERT_OK(ReplaceFileUnsynced(disk, folder + "/event.json", "{}"));
  ASSERT_OK_AND_ASSIGN(HookExchange exchange, HookExchange::Open(folder));
  EXPECT_FALSE(std::filesystem::exists(folder + "/event.json"));
  ASSERT_OK(exchange.Send({{"hook", "test_end"}}));
  ASSERT_OK(ReplaceFileUnsynced(disk, folder + "/answer.json",
                                R"({"incarnation": "1", "sequence": 1})"));
  ASSERT_OK_AND_ASSIGN(const auto answer,
                       exchange.Receive(absl::Milliseconds(1)));
  EXPECT_FALSE(answer.has_value());
  ASSERT_OK(ReplaceFileUnsynced(disk, folder + "/answer.json", "[1"));
  EXPECT_THAT(
      std::string(exchange.Receive(absl::Milliseconds(1)).status().message()),
      HasSubstr("answer.json has \"[1\"; expected a JSON object"));
}

}  // namespace
}  // namespace muster
