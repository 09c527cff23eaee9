// Tests several models on one strategy. Each has its own weights and optimizer.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/time_distributed.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_strategies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kExamples = 24;

Dataset Data() {
  Tensor x(DType::kFloat32, {kExamples, 3});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(2, i) % 2001) / 1000 - 1;
  }
  return Dataset::FromTensorSlices({x, y}).Batch(8);
}

Model Line(const std::string& name) {
  return Sequential({Input({3}), Dense(1, {.name = name})});
}

absl::Status Compile(Model& model, Strategy& strategy,
                     const Optimizer& optimizer) {
  return model.Compile(strategy,
                       {.optimizer = optimizer, .loss = "mse", .seed = 3});
}

absl::Status Fit(Model& model, int epochs) {
  return model.Fit(Data(), {.epochs = epochs, .verbose = Verbosity::kSilent})
      .status();
}

using Weights = std::vector<std::vector<float>>;

Optimizer Plain() { return Sgd({.learning_rate = 0.1}); }
Optimizer Other() { return Adam({.learning_rate = 0.05}); }

class SeveralModelsTest : public ::testing::TestWithParam<LocalStrategy> {
 protected:
  std::unique_ptr<Strategy> MakeStrategy() {
    absl::StatusOr<std::unique_ptr<Strategy>> made = GetParam().make();
    EXPECT_OK(made.status());
    return std::move(made).value();
  }

  // Trains a model with its own strategy and returns its weights.
  Weights Alone(const std::string& name, const Optimizer& optimizer,
                int epochs) {
    const std::unique_ptr<Strategy> strategy = MakeStrategy();
    Model model = Line(name);
    EXPECT_OK(Compile(model, *strategy, optimizer));
    EXPECT_OK(Fit(model, epochs));
    return WeightsOf(model);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, SeveralModelsTest,
                         ::testing::ValuesIn(LocalStrategies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SeveralModelsTest, EachTrainsWithItsOwnOptimizer) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  Model first = Line("first");
  Model second = Line("second");
  ASSERT_OK(Compile(first, *strategy, Plain()));
  ASSERT_OK(Compile(second, *strategy, Other()));
  ASSERT_OK(Fit(first, 1));
  ASSERT_OK(Fit(second, 2));
  ASSERT_OK(Fit(first, 1));
  EXPECT_EQ(WeightsOf(first), Alone("first", Plain(), 2));
  EXPECT_EQ(WeightsOf(second), Alone("second", Other(), 2));
  EXPECT_EQ(first.iterations().value(), 6);
  EXPECT_EQ(second.iterations().value(), 6);
}

TEST_P(SeveralModelsTest, ALearningRateIsThatOfOneModel) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  Model first = Line("first");
  Model second = Line("second");
  ASSERT_OK(Compile(first, *strategy, Plain()));
  ASSERT_OK(Compile(second, *strategy, Plain()));
  ASSERT_OK(second.SetLearningRate(0));
  const Weights untrained = WeightsOf(second);
  ASSERT_OK(Fit(first, 1));
  ASSERT_OK(Fit(second, 1));
  EXPECT_EQ(WeightsOf(first), Alone("first", Plain(), 1));
  EXPECT_EQ(WeightsOf(second), untrained);
}

TEST_P(SeveralModelsTest, TheWeightsOfAnotherModelAreNotTaken) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  Model first = Line("line");
  Model second = Line("line");
  ASSERT_OK(Compile(first, *strategy, Plain()));
  EXPECT_THAT(
      Compile(second, *strategy, Plain()),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("line/kernel")));
}

TEST_P(SeveralModelsTest, ANewModelStartsWithInitialWeights) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  std::optional<Model> first = Line("line");
  ASSERT_OK(Compile(*first, *strategy, Other()));
  ASSERT_OK(Fit(*first, 2));
  first.reset();
  Model second = Line("line");
  ASSERT_OK(Compile(second, *strategy, Plain()));
  EXPECT_EQ(second.iterations().value(), 0);
  ASSERT_OK(Fit(second, 1));
  EXPECT_EQ(WeightsOf(second), Alone("line", Plain(), 1));
}

TEST_P(SeveralModelsTest, ModelsThatShareALayerShareItsWeights) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  const LayerOutput input = Input({3});
  const LayerPtr shared = Dense(2, {.name = "shared"});
  const LayerOutput features = shared(input);
  Model head({input}, {Dense(1, {.name = "head"})(features)});
  Model body({input}, {features});
  ASSERT_OK(Compile(head, *strategy, Plain()));
  ASSERT_OK(body.Compile(*strategy, {}));
  ASSERT_OK(Fit(head, 1));
  const Weights trained = WeightsOf(head);
  const Weights of_body = WeightsOf(body);
  ASSERT_EQ(of_body.size(), 2);
  EXPECT_EQ(of_body[0], trained[0]);
  EXPECT_EQ(of_body[1], trained[1]);
}

// Saves a model, trains it, and restores the saved weights.
void SaveTrainAndRestore(Model& model, const Dataset& data) {
  const std::string prefix = std::string(std::getenv("TEST_TMPDIR")) + "/saved";
  ASSERT_OK(model.SaveCheckpoint(prefix));
  const Weights saved = WeightsOf(model);
  ASSERT_OK(model.Fit(data, {.verbose = Verbosity::kSilent}).status());
  EXPECT_NE(WeightsOf(model), saved);
  ASSERT_OK(model.LoadWeights(prefix));
  EXPECT_EQ(WeightsOf(model), saved);
}

TEST_P(SeveralModelsTest, ALayerInTwoWrappersIsSavedOnce) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  const LayerOutput input = Input({3, 2});
  const LayerPtr shared = Dense(2, {.name = "shared"});
  const LayerOutput first = TimeDistributed(shared, {.name = "first"})(input);
  const LayerOutput second = TimeDistributed(shared, {.name = "second"})(first);
  Model model({input}, {Dense(1)(Flatten()(second))});
  ASSERT_OK(Compile(model, *strategy, Plain()));
  const Tensor x = Tensor::Full(DType::kFloat32, {8, 3, 2}, 0.5);
  const Tensor y = Tensor::Zeros(DType::kFloat32, {8, 1});
  SaveTrainAndRestore(model, Dataset::FromTensorSlices({x, y}).Batch(8));
}

TEST_P(SeveralModelsTest, ALayerOfAModelAndOfOneInsideIsSavedOnce) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy();
  const LayerPtr shared = Dense(2, {.name = "shared"});
  const LayerOutput inner_input = Input({3});
  const LayerPtr inner = Functional(inner_input, shared(inner_input));
  const LayerOutput input = Input({3});
  const LayerOutput outer = shared(input);
  Model model({input}, {Dense(1)(Add()({outer, inner(input)}))});
  ASSERT_OK(Compile(model, *strategy, Plain()));
  SaveTrainAndRestore(model, Data());
}

}  // namespace
}  // namespace muster
