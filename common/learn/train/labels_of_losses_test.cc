// Tests that errors about labels that do not fit the predictions are expressed
// in terms of the model.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/regression_metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status FitWith(const Loss& loss, const Tensor& labels) {
  const auto strategy = DefaultStrategy::Create({.thread_count = 1}).value();
  Model model = Sequential({Dense(3)});
  EXPECT_OK(model.Compile(
      *strategy, {.optimizer = Sgd({.learning_rate = 0.1}), .loss = loss}));
  const Tensor features = Tensor::Full(DType::kFloat32, {8, 4}, 1);
  return model
      .Fit(Dataset::FromTensorSlices({features, labels}).Batch(4),
           {.verbose = Verbosity::kSilent})
      .status();
}

TEST(LabelsOfLossesTest, OneLabelBesideSeveralPredictions) {
  const Tensor labels = Tensor::Full(DType::kFloat32, {8}, 1);
  for (const Loss& loss : {MeanSquaredError(), CategoricalCrossentropy()}) {
    EXPECT_THAT(FitWith(loss, labels),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("predictions of \"sequential\""),
                               HasSubstr(loss.name()),
                               HasSubstr("1 label, and the model predicts 3 "
                                         "numbers for it"),
                               HasSubstr("sparse_categorical_crossentropy"),
                               HasSubstr("give the last layer 1 unit"))));
  }
}

TEST(LabelsOfLossesTest, LabelsOfAnotherWidth) {
  EXPECT_THAT(
      FitWith(MeanSquaredError(), Tensor::Full(DType::kFloat32, {8, 2}, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("predicts 3 numbers for each example, and its label "
                         "has 2. Give the last layer 2 units")));
}

TEST(LabelsOfLossesTest, ASparseLossIsNotAdvisedToBeSparse) {
  EXPECT_THAT(FitWith(SparseCategoricalCrossentropy(),
                      Tensor::Full(DType::kFloat32, {8, 2, 2}, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("sparse_categorical_crossentropy"),
                             Not(HasSubstr("take a sparse loss")))));
}

TEST(LabelsOfLossesTest, OneHotLabelsOfALossOfClassNumbers) {
  EXPECT_THAT(FitWith(SparseCategoricalCrossentropy(),
                      Tensor::Full(DType::kFloat32, {8, 3}, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("each label has 3 numbers, as one-hot labels "
                                 "have, and the loss expects the number of a "
                                 "class. Use the loss "
                                 "categorical_crossentropy")));
}

TEST(LabelsOfLossesTest, LabelsThatFitTrain) {
  EXPECT_OK(
      FitWith(MeanSquaredError(), Tensor::Full(DType::kFloat32, {8, 3}, 1)));
  EXPECT_OK(FitWith(SparseCategoricalCrossentropy(),
                    Tensor::Full(DType::kInt64, {8}, 1)));
}

// The values are those of Keras.
TEST(LabelsOfMetricsTest, CorrelationsOfLabelsWithoutAnAxisAreOverTheBatch) {
  const auto strategy = DefaultStrategy::Create({.thread_count = 1}).value();
  Model model =
      Sequential({Dense(1, {.use_bias = false, .kernel_initializer = Ones()})});
  ASSERT_OK(model.Compile(*strategy, {.loss = MeanSquaredError(),
                                      .metrics = {PearsonCorrelation(),
                                                  ConcordanceCorrelation()}}));
  const Tensor features = Tensor::FromValues<float>({4, 1}, {1, -1, 2, -2});
  const Tensor labels = Tensor::FromValues<float>({4}, {1, 0, 1, 0});
  ASSERT_OK_AND_ASSIGN(
      const Logs logs,
      model.Evaluate(Dataset::FromTensorSlices({features, labels}).Batch(4),
                     {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("pearson_correlation"), 0.94868326, 1e-6);
  EXPECT_NEAR(logs.at("concordance_correlation"), 0.5, 1e-6);
}

}  // namespace
}  // namespace muster
