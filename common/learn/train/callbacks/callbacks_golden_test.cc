// Compares the callbacks with Keras' for the same values: the cases of
// tests/golden/cases/callbacks.py.

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/callbacks.h"
#include "common/learn/train/callbacks/lambda_callback.h"
#include "common/learn/train/model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/keras_config_reader.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// Reports the monitored value, and sets the weight to the number of the epoch.
class Script final : public Callback {
 public:
  Script(std::string name, std::vector<double> values)
      : name_(std::move(name)), values_(std::move(values)) {}

  absl::Status OnEpochBegin(Model& model, int epoch) override {
    return model.SetWeights(
        {Tensor::FromValues<float>({1, 1}, {static_cast<float>(epoch + 1)})});
  }
  absl::Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    logs[name_] = values_[epoch];
    return absl::OkStatus();
  }

 private:
  const std::string name_;
  const std::vector<double> values_;
};

absl::StatusOr<std::unique_ptr<Callback>> MakeCallback(Json config,
                                                       std::ostream* output) {
  config["verbose"] = 1;
  const CallbackKind* const kind = FindKerasKind(kCallbackKinds, config);
  if (kind == nullptr) return absl::NotFoundError(config["class_name"]);
  KerasConfigReader reader(config);
  return kind->make(reader, output);
}

// Without empty lines.
std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(absl::StripAsciiWhitespace(text), '\n',
                        absl::SkipEmpty());
}

class CallbacksGoldenTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(CallbacksGoldenTest, MatchesKeras) {
  const Json& config = GetParam().config;
  const Json& wanted = GetParam().json["outputs"];
  const std::vector<double> values = GetParam().json["inputs"]["values"];

  std::ostringstream output;
  std::vector<float> rates;
  Script script(config.value("monitor", "val_loss"), values);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Callback> callback,
                       MakeCallback(config, &output));
  LambdaCallback keep_rate(
      {.on_epoch_end = [&](Model& model, int, const Logs&) -> absl::Status {
        ASSIGN_OR_RETURN(const double rate, model.learning_rate());
        rates.push_back(static_cast<float>(rate));
        return absl::OkStatus();
      }});

  Model model = Sequential({Dense(1, {.use_bias = false})});
  ASSERT_OK(
      model.Compile({.optimizer = Sgd({.learning_rate = 0.5}),
                     .loss = MeanSquaredError(),
                     // Monitored by some cases, with the values of the script.
                     .metrics = {BinaryAccuracy().Named("accuracy")}}));
  const Dataset data =
      Dataset::FromTensorSlices({Tensor::Zeros(DType::kFloat32, {1, 1}),
                                 Tensor::Zeros(DType::kFloat32, {1, 1})})
          .Batch(1);
  ASSERT_OK_AND_ASSIGN(
      const History history,
      model.Fit(data, {.epochs = static_cast<int>(values.size()),
                       .verbose = Verbosity::kSilent,
                       .callbacks = {&script, callback.get(), &keep_rate}}));

  EXPECT_EQ(history.epoch.size(), wanted["epochs"].get<size_t>());
  EXPECT_EQ(rates, wanted["learning_rates"].get<std::vector<float>>());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  EXPECT_EQ(weights[0].flat<float>()[0], wanted["weights"].get<float>());
  EXPECT_EQ(LinesOf(output.str()),
            wanted["messages"].get<std::vector<std::string>>());
}

INSTANTIATE_TEST_SUITE_P(All, CallbacksGoldenTest,
                         ::testing::ValuesIn(ReadGoldenCases("callbacks.json")),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
