// Trains models with the policy mixed_float16 like Keras, with loss scales that
// overflow at first. cases/loss_scale.py describes the data.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

// Sums are rounded to float16 in another order than in Keras, which changes a
// gradient by up to some thousandths.
constexpr double kTolerance = 2e-3;

class LossScaleGoldenTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  LossScaleGoldenTest()
      : strategy_(DefaultStrategy::Create({.thread_count = 1}).value()) {}

  Model MakeModel() {
    const DTypePolicyScope scope(kMixedFloat16Policy);
    return Sequential({Input({4}), Dense(5, {.activation = Activation::kTanh}),
                       LayerNormalization(), Dense(3)});
  }

  std::vector<Tensor> WeightsBefore() const {
    std::vector<Tensor> weights;
    for (int i = 0; i < kWeightCount; ++i) {
      weights.push_back(GetParam().inputs.at(absl::StrCat("weight_", i)));
    }
    return weights;
  }

  int64_t StepCount() const {
    return GetParam().outputs.at("loss").element_count();
  }

  // Takes steps [begin, end) and compares the results of each.
  void TakeSteps(Model& model, int64_t begin, int64_t end) {
    const auto& outputs = GetParam().outputs;
    const Element batch = {GetParam().inputs.at("x"),
                           GetParam().inputs.at("y")};
    for (int64_t step = begin; step < end; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      ASSERT_OK_AND_ASSIGN(const Logs logs, model.TrainOnBatch(batch));
      const double loss = outputs.at("loss").ElementAsDouble(step);
      EXPECT_NEAR(logs.at("loss"), loss, kTolerance * loss);
      ASSERT_OK_AND_ASSIGN(const Tensor scale,
                           strategy_->variables().Read("loss_scale"));
      EXPECT_EQ(scale.ElementAsDouble(0),
                outputs.at("dynamic_scale").ElementAsDouble(step));
      EXPECT_THAT(model.iterations(),
                  IsOkAndHolds(static_cast<int64_t>(
                      outputs.at("iterations").ElementAsDouble(step))));
    }
  }

  void ExpectKerasWeights(const Model& model) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
    for (int i = 0; i < kWeightCount; ++i) {
      const Tensor& expected =
          GetParam().outputs.at(absl::StrCat("weight_", i));
      EXPECT_EQ(DescribeDifference(weights[i], expected, kTolerance), "")
          << model.weights()[i].name();
    }
  }

  static constexpr int kWeightCount = 6;
  const std::unique_ptr<Strategy> strategy_;
};

TEST_P(LossScaleGoldenTest, StepsAreThoseOfKeras) {
  ASSERT_OK_AND_ASSIGN(
      const proto::Optimizer optimizer,
      OptimizerFromKerasConfig(GetParam().config["optimizer"].dump()));
  Model model = MakeModel();
  ASSERT_OK(model.Compile(*strategy_, {.optimizer = optimizer, .loss = "mse"}));
  ASSERT_OK(model.SetWeights(WeightsBefore()));
  TakeSteps(model, 0, StepCount());
  ExpectKerasWeights(model);
}

TEST_P(LossScaleGoldenTest, PredictionsAreFloat16) {
  Model model = MakeModel();
  ASSERT_OK(model.Compile(*strategy_, {.loss = "mse"}));
  ASSERT_OK(model.SetWeights(WeightsBefore()));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> predictions,
                       model.PredictOnBatch({GetParam().inputs.at("x")}));
  EXPECT_EQ(DescribeDifference(predictions[0],
                               GetParam().outputs.at("prediction"), kTolerance),
            "");
}

TEST_P(LossScaleGoldenTest, GoesOnFromTheFileOfKeras) {
  if (!GetParam().config.contains("saved")) GTEST_SKIP() << "was not saved";
  const std::string file =
      absl::StrCat("tests/golden/keras_files/", GetParam().name, ".keras");
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(*strategy_, file));
  TakeSteps(model, GetParam().config["saved"].get<int64_t>(), StepCount());
  ExpectKerasWeights(model);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LossScaleGoldenTest,
    ::testing::ValuesIn(ReadGoldenCases("loss_scale.json")),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
