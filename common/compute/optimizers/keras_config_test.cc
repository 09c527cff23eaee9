#include "common/compute/optimizers/keras_config.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// tests/golden checks the conversion of configs written by Keras.

TEST(KerasConfig, EqualsKerasSerialization) {
  ASSERT_OK_AND_ASSIGN(
      const std::string json,
      KerasConfigOf(AdamW({.beta_1 = 0.5}, {.global_clipnorm = 2}).message()));
  EXPECT_EQ(json,
            R"({"module":"keras.optimizers","class_name":"AdamW",)"
            R"("config":{"learning_rate":0.001,"weight_decay":0.004,)"
            R"("clipnorm":null,"global_clipnorm":2.0,"clipvalue":null,)"
            R"("use_ema":false,"ema_momentum":0.99,)"
            R"("ema_overwrite_frequency":null,)"
            R"("gradient_accumulation_steps":null,)"
            R"("beta_1":0.5,"beta_2":0.999,"epsilon":1e-07,"amsgrad":false},)"
            R"("registered_name":null})");
}

TEST(KerasConfig, ContainsTheConfigOfTheSchedule) {
  ASSERT_OK_AND_ASSIGN(
      const std::string json,
      KerasConfigOf(Sgd({.learning_rate = PiecewiseConstantDecay(
                             {.boundaries = {4}, .values = {0.5, 0.25}})})
                        .message()));
  const nlohmann::json rate =
      nlohmann::json::parse(json)["config"]["learning_rate"];
  EXPECT_EQ(rate["module"], "keras.optimizers.schedules");
  EXPECT_EQ(rate["class_name"], "PiecewiseConstantDecay");
  EXPECT_EQ(rate["config"].dump(), R"({"boundaries":[4],"values":[0.5,0.25]})");
}

TEST(KerasConfig, AnOptimizerWithALossScaleIsAnInnerOne) {
  const Optimizer optimizer =
      LossScaleOptimizer(Sgd({.learning_rate = 0.5}, {.clipnorm = 1}),
                         {.initial_scale = 1024, .dynamic_growth_steps = 3});
  ASSERT_OK_AND_ASSIGN(const std::string json,
                       KerasConfigOf(optimizer.message()));
  nlohmann::json object = nlohmann::json::parse(json);
  EXPECT_EQ(object["class_name"], "LossScaleOptimizer");
  EXPECT_EQ(object["config"]["initial_scale"], 1024);
  EXPECT_EQ(object["config"]["dynamic_growth_steps"], 3);
  EXPECT_EQ(object["config"]["inner_optimizer"]["class_name"], "SGD");
  EXPECT_EQ(object["config"]["inner_optimizer"]["config"]["clipnorm"], 1);
  ASSERT_OK_AND_ASSIGN(const proto::Optimizer read,
                       OptimizerFromKerasConfig(json));
  ASSERT_OK_AND_ASSIGN(const std::string again, KerasConfigOf(read));
  EXPECT_EQ(again, json);
  // Earlier versions of Keras wrote these as well.
  for (const char* const unused : {"weight_decay", "clipnorm"}) {
    object["config"][unused] = nullptr;
  }
  object["config"]["use_ema"] = false;
  object["config"]["ema_momentum"] = 0.99;
  EXPECT_OK(OptimizerFromKerasConfig(object.dump()).status());
  object["config"]["clipnorm"] = 1.0;
  EXPECT_THAT(OptimizerFromKerasConfig(object.dump()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("clipnorm is 1.0")));
  object["config"] = {{"initial_scale", 2.0}};
  EXPECT_THAT(OptimizerFromKerasConfig(object.dump()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no inner_optimizer")));
}

// Only this class of Keras rejects None for weight_decay.
TEST(KerasConfig, AdamWHasANumberForWeightDecay) {
  ASSERT_OK_AND_ASSIGN(const std::string json,
                       KerasConfigOf(AdamW({}, {.weight_decay = 0}).message()));
  EXPECT_EQ(nlohmann::json::parse(json)["config"]["weight_decay"], 0.0);
  ASSERT_OK_AND_ASSIGN(const std::string of_sgd,
                       KerasConfigOf(Sgd({}).message()));
  EXPECT_TRUE(
      nlohmann::json::parse(of_sgd)["config"]["weight_decay"].is_null());
}

TEST(KerasConfig, ClassNamesIgnoreCase) {
  for (const char* const name : {"adam", "Adam", "ADAM"}) {
    ASSERT_OK_AND_ASSIGN(
        const proto::Optimizer optimizer,
        OptimizerFromKerasConfig(
            nlohmann::json(
                {{"class_name", name}, {"config", nlohmann::json::object()}})
                .dump()));
    EXPECT_TRUE(optimizer.has_adam());
  }
}

TEST(KerasConfig, RoundTripsAllOptimizers) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    ASSERT_OK_AND_ASSIGN(const std::string json,
                         KerasConfigOf(kind->defaults().message()));
    ASSERT_OK_AND_ASSIGN(const proto::Optimizer read,
                         OptimizerFromKerasConfig(json));
    ASSERT_OK_AND_ASSIGN(const std::string again, KerasConfigOf(read));
    EXPECT_EQ(again, json);
    EXPECT_EQ(read.rule_case(), kind->rule_case);
  }
}

TEST(KerasConfig, ErrorsNameTheArgument) {
  const auto sgd = [](const std::string& arguments) {
    return R"({"class_name": "SGD", "config": {)" + arguments + "}}";
  };
  EXPECT_OK(OptimizerFromKerasConfig(sgd(R"("use_ema": false)")).status());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "expected {\"class_name\""},
      {"{}", "expected {\"class_name\""},
      {R"({"class_name": "Sdg", "config": {}})", "no optimizer Sdg"},
      {sgd(R"("beta_1": 1)"), "sgd has no argument beta_1"},
      {sgd(R"("momentum": "much")"), "momentum is \"much\"; expected a number"},
      {sgd(R"("nesterov": 1)"), "nesterov is 1; expected true or false"},
      {sgd(R"("loss_scale_factor": 2.0)"), "loss_scale_factor is 2.0"},
      {sgd(R"("gradient_accumulation_steps": 4.5)"),
       "gradient_accumulation_steps is 4.5; expected an integer"},
      {sgd(R"("learning_rate": {"class_name": "Halve", "config": {}})"),
       "no schedule Halve"},
      {sgd(R"("learning_rate": {"class_name": "CosineDecay",
              "config": {"t_mul": 2}})"),
       "CosineDecay has no argument t_mul"},
  };
  for (const auto& [json, message] : cases) {
    EXPECT_THAT(
        OptimizerFromKerasConfig(json),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

}  // namespace
}  // namespace muster
