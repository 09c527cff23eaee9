// Tests that training on arrays equals training on the batches made of them,
// with every strategy of one process.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExamples = 27;
constexpr int64_t kBatch = 8;
constexpr int64_t kTrained = 18;  // floor(27 * (1 - 0.3))

// x, y and sample weights.
Element Arrays() {
  Tensor x(DType::kFloat32, {kExamples, 3});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  Tensor y(DType::kInt64, {kExamples});
  Tensor weights(DType::kFloat32, {kExamples});
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(2, i) % 3);
    weights.mutable_flat<float>()[i] = static_cast<float>(i % 4) / 2;
  }
  return {x, y, weights};
}

Dataset Examples() { return Dataset::FromTensorSlices(Arrays()); }

Model Classifier() { return Sequential({Dense(3)}); }

CompileOptions ClassifierOptions(uint64_t seed = 3) {
  return {.optimizer = Sgd({.learning_rate = 0.3, .momentum = 0.9}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .weighted_metrics = {SparseCategoricalAccuracy()},
          .seed = seed};
}

FitOptions ByTwoEpochs() {
  return {.batch_size = kBatch, .epochs = 2, .verbose = Verbosity::kSilent};
}

struct Trained {
  std::vector<float> kernel;
  History history;
};

std::vector<float> KernelOf(const Model& model) {
  const auto weights = model.GetWeights();
  EXPECT_OK(weights.status());
  const auto values = weights->front().flat<float>();
  return {values.begin(), values.end()};
}

template <typename Data>
absl::StatusOr<Trained> Train(Strategy& strategy, const Data& data,
                              const FitOptions& fit, uint64_t seed = 3) {
  Model model = Classifier();
  RETURN_IF_ERROR(model.Compile(strategy, ClassifierOptions(seed)));
  Trained trained;
  ASSIGN_OR_RETURN(trained.history, model.Fit(data, fit));
  trained.kernel = KernelOf(model);
  return trained;
}

std::unique_ptr<Strategy> Alone() {
  return DefaultStrategy::Create({.thread_count = 1}).value();
}

void ExpectSame(const Trained& got, const Trained& wanted) {
  EXPECT_THAT(got.kernel, Pointwise(FloatNear(2e-5), wanted.kernel));
  EXPECT_EQ(got.history.example_count, wanted.history.example_count);
  ASSERT_EQ(got.history.history.size(), wanted.history.history.size());
  for (const auto& [name, values] : wanted.history.history) {
    EXPECT_THAT(got.history.history.at(name),
                Pointwise(FloatNear(2e-5), values))
        << name;
  }
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Strategy>()> make;
};

std::vector<Case> Strategies() {
  return {
      {"Default", Alone},
      {"TwoReplicas",
       [] {
         return MirroredStrategy::Create(
                    {.devices = {"cpu:0", "cpu:1"}, .thread_count = 1})
             .value();
       }},
      {"CentralStorage",
       [] {
         return CentralStorageStrategy::Create(
                    {.compute_devices = {"cpu:0", "cpu:1"}, .thread_count = 1})
             .value();
       }},
  };
}

class ModelOnArraysTest : public ::testing::TestWithParam<Case> {
 protected:
  const std::unique_ptr<Strategy> strategy_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Strategies, ModelOnArraysTest,
                         ::testing::ValuesIn(Strategies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ModelOnArraysTest, TrainsAsOnTheBatchesThatTheyMake) {
  FitOptions by_hand = ByTwoEpochs();
  by_hand.batch_size = std::nullopt;
  by_hand.validation_data = Examples().Skip(kTrained).Batch(kBatch);
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      Train(*alone, Examples().Take(kTrained).Batch(kBatch), by_hand));

  FitOptions fit = ByTwoEpochs();
  fit.shuffle = false;
  fit.validation_split = 0.3;
  ASSERT_OK_AND_ASSIGN(const Trained got, Train(*strategy_, Arrays(), fit));
  ExpectSame(got, wanted);
  EXPECT_EQ(got.history.example_count, 2 * kTrained);
  EXPECT_EQ(got.history.history.at("val_loss").size(), 2u);
}

Tensor Widened(const Tensor& narrow) {
  Tensor wide(DType::kFloat64, narrow.shape());
  for (int64_t i = 0; i < narrow.element_count(); ++i) {
    wide.mutable_flat<double>()[i] = narrow.flat<float>()[i];
  }
  return wide;
}

// NumPy's arrays are float64 by default.
TEST_P(ModelOnArraysTest, Float64FeaturesAreNormalizedAsFloat32) {
  const Tensor narrow = Arrays()[0];
  std::vector<Tensor> predicted;
  for (const Tensor& x : {narrow, Widened(narrow)}) {
    const auto normalization = MakeLayer<NormalizationLayer>();
    const LayerPtr layers = Sequential({normalization, Dense(3)});
    ASSERT_OK(Adapt(layers, Dataset::FromTensorSlices({x}).Batch(kBatch)));
    Model model(layers);
    ASSERT_OK(model.Compile(*strategy_, ClassifierOptions()));
    ASSERT_OK(model.Fit({x, Arrays()[1]}, ByTwoEpochs()).status());
    ASSERT_OK_AND_ASSIGN(predicted.emplace_back(),
                         model.Predict({x}, {.batch_size = kBatch}));
  }
  EXPECT_EQ(predicted[1].type(), predicted[0].type());
  EXPECT_THAT(predicted[1].flat<float>(),
              Pointwise(FloatNear(1e-5), predicted[0].flat<float>()));
}

TEST_P(ModelOnArraysTest, LabelsAndSampleWeightsMayBeFloat64) {
  const Element arrays = Arrays();
  std::vector<double> losses;
  for (const bool are_wide : {false, true}) {
    Element used = {arrays[0], arrays[0], arrays[2]};
    if (are_wide) used = {arrays[0], Widened(used[1]), Widened(used[2])};
    Model model = Classifier();
    ASSERT_OK(model.Compile(*strategy_, {.optimizer = Sgd(),
                                         .loss = MeanSquaredError(),
                                         .metrics = {MeanAbsoluteError()},
                                         .seed = 3}));
    ASSERT_OK_AND_ASSIGN(const History history, model.Fit(used, ByTwoEpochs()));
    losses.push_back(history.history.at("loss").back());
  }
  EXPECT_NEAR(losses[1], losses[0], 1e-5);
}

TEST_P(ModelOnArraysTest, ShufflesAllReplicasAlike) {
  const auto alone = Alone();
  FitOptions fit = ByTwoEpochs();
  fit.validation_data = Arrays();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, Train(*alone, Arrays(), fit));
  ASSERT_OK_AND_ASSIGN(const Trained got, Train(*strategy_, Arrays(), fit));
  ExpectSame(got, wanted);
}

TEST_P(ModelOnArraysTest, EvaluatesAndPredictsEveryExampleInOrder) {
  const auto alone = Alone();
  Model model = Classifier();
  ASSERT_OK(model.Compile(*alone, ClassifierOptions()));
  const EvaluateOptions quiet{.verbose = Verbosity::kSilent};
  ASSERT_OK_AND_ASSIGN(const Logs wanted,
                       model.Evaluate(Examples().Batch(kBatch), quiet));
  ASSERT_OK_AND_ASSIGN(const Tensor predicted,
                       model.Predict(Examples().Batch(1)));

  Model same = Classifier();
  ASSERT_OK(same.Compile(*strategy_, ClassifierOptions()));
  ASSERT_OK_AND_ASSIGN(
      const Logs logs,
      same.Evaluate(Arrays(),
                    {.batch_size = kBatch, .verbose = Verbosity::kSilent}));
  for (const auto& [name, value] : wanted) {
    EXPECT_NEAR(logs.at(name), value, 1e-5) << name;
  }
  ASSERT_OK_AND_ASSIGN(const Tensor got,
                       same.Predict({Arrays()[0]}, {.batch_size = 4}));
  EXPECT_EQ(got.type(), predicted.type());
  EXPECT_THAT(got.flat<float>(),
              Pointwise(FloatNear(1e-5), predicted.flat<float>()));
}

TEST(ModelOnArrays, TheSameSeedShufflesAlikeAndAnotherDoesNot) {
  // Without momentum and with the same initial weights, only the order of
  // examples can differ.
  const auto train = [](uint64_t seed) {
    const auto strategy = Alone();
    Model model = Classifier();
    CompileOptions options = ClassifierOptions(seed);
    options.optimizer = Sgd({.learning_rate = 0.3});
    EXPECT_OK(model.Compile(*strategy, options));
    EXPECT_OK(model.Build(Arrays()[0].type()));
    std::vector<std::vector<float>> kernels;
    for (int call = 0; call < 2; ++call) {
      EXPECT_OK(model.SetWeights({Tensor::Zeros(DType::kFloat32, {3, 3}),
                                  Tensor::Zeros(DType::kFloat32, {3})}));
      EXPECT_OK(
          model.Fit(Arrays(), {.batch_size = 4, .verbose = Verbosity::kSilent})
              .status());
      kernels.push_back(KernelOf(model));
    }
    return kernels;
  };
  const auto kernels = train(3);
  EXPECT_EQ(train(3), kernels);
  EXPECT_NE(kernels[0], kernels[1]);
  EXPECT_NE(train(4)[0], kernels[0]);
}

// A callback may resume training in the order of the failed call.
TEST(ModelOnArrays, ACallThatFailedIsMadeAgainInTheSameOrder) {
  class Failing final : public Callback {
    absl::Status OnTrainEnd(Model&, const Logs&) override {
      return absl::InternalError("as it should");
    }
  };
  const auto train = [](bool fails_first) {
    const auto strategy = Alone();
    Model model = Classifier();
    CompileOptions options = ClassifierOptions();
    options.optimizer = Sgd({.learning_rate = 0.3});
    EXPECT_OK(model.Compile(*strategy, options));
    EXPECT_OK(model.Build(Arrays()[0].type()));
    FitOptions fit = ByTwoEpochs();
    Failing failing;
    fit.callbacks = {&failing};
    if (fails_first) {
      EXPECT_THAT(model.Fit(Arrays(), fit),
                  StatusIs(absl::StatusCode::kInternal));
    }
    fit.callbacks = {};
    EXPECT_OK(model.SetWeights({Tensor::Zeros(DType::kFloat32, {3, 3}),
                                Tensor::Zeros(DType::kFloat32, {3})}));
    EXPECT_OK(model.Fit(Arrays(), fit).status());
    return KernelOf(model);
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(ModelOnArrays, SeveralWorkersTrainAsOneProcess) {
  const auto alone = Alone();
  FitOptions fit = ByTwoEpochs();
  fit.validation_split = 0.3;
  ASSERT_OK_AND_ASSIGN(const Trained wanted, Train(*alone, Arrays(), fit));
  RunLocalWorkers(2, 2, {}, [&](int, SynchronousStrategy& strategy) {
    ASSERT_OK_AND_ASSIGN(const Trained got, Train(strategy, Arrays(), fit));
    ExpectSame(got, wanted);
  });
}

TEST(ModelOnArrays, BracesAreArrays) {
  Model model = Classifier();
  ASSERT_OK(model.Compile(ClassifierOptions()));
  const Tensor x = Arrays()[0];
  const Tensor y = Arrays()[1];
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit({x, y}, {.validation_data = Element{x, y},
                                          .validation_batch_size = 5,
                                          .verbose = Verbosity::kSilent}));
  // The default batch size, 32, is more than the number of examples.
  EXPECT_EQ(history.step_count, 1);
  ASSERT_OK_AND_ASSIGN(const Logs logs,
                       model.Evaluate({x, y}, {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("loss"), history.history.at("val_loss")[0], 1e-6);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> all, model.PredictAll({x}));
  EXPECT_EQ(all[0].shape().dim(0), kExamples);
}

TEST(ModelOnArrays, RefusesOptionsThatMakeNoSense) {
  Model model = Classifier();
  ASSERT_OK(model.Compile(ClassifierOptions()));
  const auto expect_refused = [](const absl::Status& status,
                                 const std::string& why) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  const Dataset data = Examples().Batch(kBatch);
  expect_refused(model.Fit(data, {.batch_size = 4}).status(),
                 "Fit: batch_size is for arrays");
  expect_refused(model.Fit(data, {.validation_split = 0.5}).status(),
                 "Fit: validation_split is for arrays");
  expect_refused(model.Evaluate(data, {.batch_size = 4}).status(),
                 "Evaluate: batch_size is for arrays");
  expect_refused(model.Fit(Arrays(), {.steps_per_epoch = 0}).status(),
                 "steps_per_epoch must be at least 1, got 0");
  expect_refused(model.Evaluate(Arrays(), {.steps = -1}).status(), "got -1");
  expect_refused(model.Predict(Arrays(), {.batch_size = 0}).status(),
                 "Predict: batch_size must be at least 1, got 0");
  expect_refused(model.Fit(Element{}).status(), "there are no arrays");
  Model raw = Classifier();
  EXPECT_THAT(raw.Fit(Arrays()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace muster
