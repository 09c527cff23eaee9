// Tests several optimizers for the layers of one model.

#include "common/learn/train/base/layer_optimizers.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_strategies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExamples = 24;
constexpr int64_t kBatch = 8;
constexpr int64_t kInputs = 3;
constexpr int64_t kFeatures = 2;

float Number(uint64_t stream, int64_t i) {
  return static_cast<float>(FoldIn(stream, i) % 2001) / 1000 - 1;
}

Element Examples() {
  Tensor x(DType::kFloat32, {kExamples, kInputs});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = Number(1, i);
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] = Number(2, i);
  }
  return {x, y};
}

Dataset Data() { return Dataset::FromTensorSlices(Examples()).Batch(kBatch); }

// Weights backbone/kernel, backbone/bias, head/kernel, head/bias.
struct Layers {
  LayerPtr backbone = Dense(kFeatures, {.name = "backbone"});
  LayerPtr head = Dense(1, {.name = "head"});
  Model MakeModel() { return Sequential({Input({kInputs}), backbone, head}); }
};

CompileOptions Options(const Optimizer& optimizer,
                       std::vector<LayerOptimizer> layer_optimizers = {}) {
  return {.optimizer = optimizer,
          .layer_optimizers = std::move(layer_optimizers),
          .loss = "mse",
          .seed = 3};
}

absl::Status Fit(Model& model, int epochs) {
  return model.Fit(Data(), {.epochs = epochs, .verbose = Verbosity::kSilent})
      .status();
}

using Weights = std::vector<std::vector<float>>;

// Returns the distance between a layer's weights in `a` and `b`: the kernel, at
// index `first`, and the bias after it.
double DistanceOfLayer(const Weights& a, const Weights& b, size_t first) {
  double sum = 0;
  for (size_t i = first; i < first + 2; ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) {
      sum += std::pow(static_cast<double>(a[i][j]) - b[i][j], 2);
    }
  }
  return std::sqrt(sum);
}

class LayerOptimizersTest : public ::testing::TestWithParam<LocalStrategy> {
 protected:
  LayerOptimizersTest() : strategy_(MakeStrategy()) {}

  static std::unique_ptr<Strategy> MakeStrategy() {
    absl::StatusOr<std::unique_ptr<Strategy>> made = GetParam().make();
    EXPECT_OK(made.status());
    return std::move(made).value();
  }

  // Trains a model with its own strategy and returns its weights.
  static Weights Train(const CompileOptions& options, int epochs,
                       bool trains_backbone = true) {
    const std::unique_ptr<Strategy> strategy = MakeStrategy();
    Layers layers;
    layers.backbone->set_trainable(trains_backbone);
    Model model = layers.MakeModel();
    EXPECT_OK(model.Compile(*strategy, options));
    EXPECT_OK(Fit(model, epochs));
    return WeightsOf(model);
  }

  const std::unique_ptr<Strategy> strategy_;
};

INSTANTIATE_TEST_SUITE_P(Strategies, LayerOptimizersTest,
                         ::testing::ValuesIn(LocalStrategies()),
                         [](const auto& info) { return info.param.name; });

// The model and its optimizers in double precision: SGD with momentum for the
// backbone, Adam with Keras' formula for the head.
class ByHand {
 public:
  explicit ByHand(const Weights& weights) {
    for (const std::vector<float>& weight : weights) {
      weights_.emplace_back(weight.begin(), weight.end());
      slots_.emplace_back(weight.size(), 0.0);
      squares_.emplace_back(weight.size(), 0.0);
    }
  }

  void Epoch(double sgd_rate, double momentum, double adam_rate) {
    for (int64_t begin = 0; begin < kExamples; begin += kBatch) {
      const std::vector<std::vector<double>> gradients = Gradients(begin);
      ++step_;
      for (size_t i = 0; i < 2; ++i) {
        for (size_t j = 0; j < weights_[i].size(); ++j) {
          slots_[i][j] = momentum * slots_[i][j] - sgd_rate * gradients[i][j];
          weights_[i][j] += slots_[i][j];
        }
      }
      const double alpha = adam_rate * std::sqrt(1 - std::pow(0.999, step_)) /
                           (1 - std::pow(0.9, step_));
      for (size_t i = 2; i < 4; ++i) {
        for (size_t j = 0; j < weights_[i].size(); ++j) {
          const double gradient = gradients[i][j];
          slots_[i][j] += (gradient - slots_[i][j]) * 0.1;
          squares_[i][j] += (gradient * gradient - squares_[i][j]) * 0.001;
          weights_[i][j] -=
              slots_[i][j] * alpha / (std::sqrt(squares_[i][j]) + 1e-7);
        }
      }
    }
  }

  Weights Values() const {
    Weights values;
    for (const std::vector<double>& weight : weights_) {
      values.emplace_back(weight.begin(), weight.end());
    }
    return values;
  }

 private:
  // Returns the gradients of the mean squared error over the batch that starts
  // at `begin`.
  std::vector<std::vector<double>> Gradients(int64_t begin) const {
    std::vector<std::vector<double>> sums;
    for (const std::vector<double>& weight : weights_) {
      sums.emplace_back(weight.size(), 0.0);
    }
    for (int64_t n = begin; n < begin + kBatch; ++n) {
      double features[kFeatures];
      double error = weights_[3][0] - Number(2, n);
      for (int64_t k = 0; k < kFeatures; ++k) {
        features[k] = weights_[1][k];
        for (int64_t i = 0; i < kInputs; ++i) {
          features[k] +=
              Number(1, n * kInputs + i) * weights_[0][i * kFeatures + k];
        }
        error += features[k] * weights_[2][k];
      }
      const double of_output = 2 * error / kBatch;
      sums[3][0] += of_output;
      for (int64_t k = 0; k < kFeatures; ++k) {
        sums[2][k] += of_output * features[k];
        const double of_feature = of_output * weights_[2][k];
        sums[1][k] += of_feature;
        for (int64_t i = 0; i < kInputs; ++i) {
          sums[0][i * kFeatures + k] += of_feature * Number(1, n * kInputs + i);
        }
      }
    }
    return sums;
  }

  std::vector<std::vector<double>> weights_;
  std::vector<std::vector<double>> slots_;
  std::vector<std::vector<double>> squares_;
  int step_ = 0;
};

TEST_P(LayerOptimizersTest, EachLayerIsUpdatedAsByHand) {
  Model model = Layers().MakeModel();
  ASSERT_OK(model.Compile(
      *strategy_,
      Options(Adam({.learning_rate = 0.05}),
              {{"backbone", Sgd({.learning_rate = 0.1, .momentum = 0.9})}})));
  ByHand expected(WeightsOf(model));
  ASSERT_OK(Fit(model, 2));
  for (int epoch = 0; epoch < 2; ++epoch) expected.Epoch(0.1, 0.9, 0.05);
  const Weights got = WeightsOf(model);
  const Weights wanted = expected.Values();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_THAT(got[i], Pointwise(FloatNear(2e-5), wanted[i])) << i;
  }
}

// A learning rate of 0 has the same effect as freezing the layer.
TEST_P(LayerOptimizersTest, ALayerTrainsAsIfItHadTheOnlyOptimizer) {
  const Optimizer optimizers[] = {
      Adam({.learning_rate = 0.05}),
      Sgd({.learning_rate = ExponentialDecay({.initial_learning_rate = 0.2,
                                              .decay_steps = 2,
                                              .decay_rate = 0.5})}),
      Adam({.learning_rate = 0.05}, {.gradient_accumulation_steps = 2}),
      Sgd({.learning_rate = 0.1, .momentum = 0.9},
          {.use_ema = true, .ema_momentum = 0.5}),
      AdamW({.learning_rate = 0.05}, {.weight_decay = 0.1, .clipnorm = 0.1})};
  for (const Optimizer& optimizer : optimizers) {
    const Weights wanted =
        Train(Options(optimizer), 2, /*trains_backbone=*/false);
    const Weights got =
        Train(Options(Sgd({.learning_rate = 0}), {{"head", optimizer}}), 2);
    EXPECT_EQ(got, wanted);
  }
}

TEST_P(LayerOptimizersTest, AGlobalNormIsThatOfOneOptimizer) {
  const Optimizer clipped =
      Sgd({.learning_rate = 1}, {.global_clipnorm = 0.01});
  Model model = Layers().MakeModel();
  ASSERT_OK(model.Compile(*strategy_, Options(clipped, {{"head", clipped}})));
  const Weights before = WeightsOf(model);
  ASSERT_OK(model.Fit(Data().Take(1), {.verbose = Verbosity::kSilent}));
  const Weights after = WeightsOf(model);
  EXPECT_NEAR(DistanceOfLayer(before, after, 0), 0.01, 1e-5);
  EXPECT_NEAR(DistanceOfLayer(before, after, 2), 0.01, 1e-5);
}

TEST_P(LayerOptimizersTest, CheckpointsRestoreTheStateOfAll) {
  const CompileOptions options =
      Options(Adam({.learning_rate = 0.05}),
              {{"backbone", Sgd({.learning_rate = 0.1, .momentum = 0.9})}});
  const std::string prefix =
      testing::TempDir() + "/layer_optimizers_" + GetParam().name + "/ckpt-1";
  Model model = Layers().MakeModel();
  ASSERT_OK(model.Compile(*strategy_, options));
  ASSERT_OK(Fit(model, 1));
  ASSERT_OK(model.SetLearningRate(0.02));
  ASSERT_OK(model.SaveCheckpoint(prefix));
  ASSERT_OK(Fit(model, 1));

  const std::unique_ptr<Strategy> other = MakeStrategy();
  Model restored = Layers().MakeModel();
  ASSERT_OK(restored.Compile(*other, options));
  ASSERT_OK(restored.RestoreCheckpoint(prefix).status());
  EXPECT_EQ(restored.iterations().value(), 3);
  EXPECT_EQ(restored.learning_rate().value(), 0.02);
  ASSERT_OK(Fit(restored, 1));
  EXPECT_EQ(WeightsOf(restored), WeightsOf(model));
}

TEST_P(LayerOptimizersTest, ACheckpointOfAnotherRuleIsRestoredWithAWarning) {
  const auto with_backbone = [](const Optimizer& optimizer) {
    return Options(Adam({.learning_rate = 0.05}), {{"backbone", optimizer}});
  };
  const std::string prefix = testing::TempDir() + "/layer_optimizers_changed_" +
                             GetParam().name + "/ckpt-1";
  Model model = Layers().MakeModel();
  ASSERT_OK(model.Compile(
      *strategy_, with_backbone(Sgd({.learning_rate = 0.1, .momentum = 0.9}))));
  ASSERT_OK(Fit(model, 1));
  ASSERT_OK(model.SaveCheckpoint(prefix));
  // The state of a rule with the same name is restored even if its arguments
  // differ.
  const std::pair<Optimizer, bool> cases[] = {
      {Sgd({.learning_rate = 0.2, .momentum = 0.5}), false},
      {RmsProp({.learning_rate = 0.1}), true}};
  for (const auto& [optimizer, is_warned_of] : cases) {
    const std::unique_ptr<Strategy> other = MakeStrategy();
    Model restored = Layers().MakeModel();
    ASSERT_OK(restored.Compile(*other, with_backbone(optimizer)));
    testing::internal::CaptureStderr();
    EXPECT_OK(restored.RestoreCheckpoint(prefix).status());
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find("was saved with another optimizer of backbone/kernel "
                       "and other weights") != std::string::npos,
              is_warned_of)
        << log;
    EXPECT_EQ(WeightsOf(restored), WeightsOf(model));
    ASSERT_OK(Fit(restored, 1));
  }
}

TEST_P(LayerOptimizersTest, LayersOfMixedPrecisionHaveTheirOptimizers) {
  const Optimizer optimizer = Adam({.learning_rate = 0.05});
  const CompileOptions by_layer =
      Options(Sgd({.learning_rate = 0}), {{"head", optimizer}});
  const Weights of_float32 = Train(by_layer, 2);
  const DTypePolicyScope scope(kMixedBfloat16Policy);
  const Weights wanted =
      Train(Options(optimizer), 2, /*trains_backbone=*/false);
  const Weights got = Train(by_layer, 2);
  EXPECT_EQ(got, wanted);
  EXPECT_NE(got, of_float32);
}

TEST_P(LayerOptimizersTest, TheLearningRateIsThatOfTheOtherLayers) {
  Model model = Layers().MakeModel();
  ASSERT_OK(model.Compile(
      *strategy_, Options(Sgd({.learning_rate = 0.1}), {{"head", Adam()}})));
  EXPECT_EQ(model.learning_rate().value(), 0.1);
  ASSERT_OK(model.SetLearningRate(0));
  const Weights before = WeightsOf(model);
  ASSERT_OK(Fit(model, 1));
  const Weights after = WeightsOf(model);
  EXPECT_EQ(DistanceOfLayer(before, after, 0), 0);
  EXPECT_GT(DistanceOfLayer(before, after, 2), 0);
}

TEST_P(LayerOptimizersTest, AFailedChangeLeavesTheOptimizersAsTheyAre) {
  const CompileOptions options =
      Options(Sgd({.learning_rate = 0.1}), {{"head", Adam()}});
  const std::unique_ptr<Strategy> other = MakeStrategy();
  Model model = Layers().MakeModel();
  Model unchanged = Layers().MakeModel();
  ASSERT_OK(model.Compile(*strategy_, options));
  ASSERT_OK(unchanged.Compile(*other, options));
  const Element batch = Examples();
  // Compiles the step, which does not look up optimizers afterwards.
  ASSERT_OK(model.TrainOnBatch(batch).status());
  ASSERT_OK(unchanged.TrainOnBatch(batch).status());
  EXPECT_THAT(model.Compile(*strategy_, Options(Sgd({.learning_rate = 7}))),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"head/kernel\" is adam")));
  EXPECT_THAT(model.Compile(*strategy_, Options(Sgd({.learning_rate = 7}),
                                                {{"head", Sgd()}})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"head/kernel\" is adam")));
  ASSERT_OK(model.TrainOnBatch(batch).status());
  ASSERT_OK(unchanged.TrainOnBatch(batch).status());
  EXPECT_EQ(WeightsOf(model), WeightsOf(unchanged));
}

// Tests for which one strategy is enough.
class LayerOptimizerPaths : public ::testing::Test {
 protected:
  absl::Status Compile(std::vector<LayerOptimizer> layer_optimizers,
                       const Optimizer& optimizer = Sgd()) {
    Model model = layers_.MakeModel();
    return model.Compile(Options(optimizer, std::move(layer_optimizers)));
  }
  void ExpectRefused(const std::vector<LayerOptimizer>& layer_optimizers,
                     const std::string& why) {
    EXPECT_THAT(Compile(layer_optimizers),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  }

  Layers layers_;
};

TEST_F(LayerOptimizerPaths, TheLongestPrefixOfWholeNamesCounts) {
  const Optimizer still = Sgd({.learning_rate = 0});
  const Optimizer moving = Sgd({.learning_rate = 0.1});
  const LayerPtr backbone =
      Sequential({Dense(2, {.name = "a"}), Dense(2, {.name = "ab"})},
                 {.name = "backbone"});
  Model model = Sequential(
      {Input({kInputs}), backbone, Dense(1, {.name = "backbone_2"})});
  ASSERT_OK(model.Compile(Options(moving, {{"backbone/a/bias", still},
                                           {"backbone", still},
                                           {"backbone/a", moving}})));
  std::vector<std::string> names;
  for (const Weight& weight : model.weights()) names.push_back(weight.name());
  ASSERT_THAT(names,
              ::testing::ElementsAre("backbone/a/kernel", "backbone/a/bias",
                                     "backbone/ab/kernel", "backbone/ab/bias",
                                     "backbone_2/kernel", "backbone_2/bias"));
  const Weights before = WeightsOf(model);
  ASSERT_OK(Fit(model, 1));
  const Weights after = WeightsOf(model);
  const bool changes[] = {true, false, false, false, true, true};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(before[i] != after[i], changes[i]) << names[i];
  }
}

TEST_F(LayerOptimizerPaths, RefusesPrefixesOfNoTrainableWeight) {
  ExpectRefused({{"bakbone", Sgd()}},
                "prefix \"bakbone\" matches no weight of the model; did you "
                "mean \"backbone\"?");
  ExpectRefused({{"back", Sgd()}},
                "\"back\" matches no weight of the model; trainable weights "
                "are in: backbone, head");
  layers_.backbone->set_trainable(false);
  ExpectRefused({{"backbone", Sgd()}}, "its layers are frozen");
}

TEST_F(LayerOptimizerPaths, RefusesThemWhenTheModelIsBuilt) {
  Model model = Sequential({Dense(1, {.name = "head"})});
  ASSERT_OK(model.Compile(Options(Sgd(), {{"neck", Sgd()}})));
  EXPECT_THAT(Fit(model, 1), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("prefix \"neck\" matches no")));
}

TEST_F(LayerOptimizerPaths, RefusesWhatIsNotComplete) {
  ExpectRefused({{"", Sgd()}}, "is not the path of a layer");
  ExpectRefused({{"head/", Sgd()}}, "is not the path of a layer");
  ExpectRefused({{"head", Sgd()}, {"head", Adam()}},
                "prefix \"head\" occurs twice");
  ExpectRefused({{"head", Optimizer()}}, "prefix \"head\" has no optimizer");
  ExpectRefused({{"head", Adam({.beta_1 = 2})}}, "prefix \"head\" has adam");
  EXPECT_THAT(Compile({{"head", Sgd()}}, Optimizer()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs an optimizer beside it")));
}

TEST_F(LayerOptimizerPaths, FilesOfKerasHaveNoOptimizer) {
  const std::string path = testing::TempDir() + "/layer_optimizers.keras";
  Model model = layers_.MakeModel();
  ASSERT_OK(model.Compile(Options(Adam(), {{"head", Sgd()}})));
  ASSERT_OK(Fit(model, 1));
  ASSERT_OK(model.Save(path));
  ASSERT_OK_AND_ASSIGN(Model loaded, LoadModel(path));
  EXPECT_EQ(WeightsOf(loaded), WeightsOf(model));
  EXPECT_THAT(loaded.learning_rate(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without an optimizer")));
}

// A custom step also clips as the optimizers specify.
TEST_F(LayerOptimizerPaths, CustomStepsUseAllOptimizers) {
  CompileOptions options =
      Options(Sgd({.learning_rate = 1}, {.global_clipnorm = 0.01}),
              {{"head", Sgd({.learning_rate = 1}, {.clipvalue = 0.001})}});
  options.train_step = [](const StepTrace& step) -> std::vector<StepMetric> {
    const Value errors = Square(step.Call(step.element[0]) - step.element[1]);
    step.Minimize(Mean(errors));
    return {{"loss", MeanStatistics(errors)}};
  };
  Model model = layers_.MakeModel();
  ASSERT_OK(model.Compile(options));
  const Weights before = WeightsOf(model);
  ASSERT_OK(model.Fit(Data().Take(1), {.verbose = Verbosity::kSilent}));
  const Weights after = WeightsOf(model);
  EXPECT_NEAR(DistanceOfLayer(before, after, 0), 0.01, 1e-5);
  EXPECT_NEAR(std::abs(after[3][0] - before[3][0]), 0.001, 1e-6);
}

}  // namespace
}  // namespace muster
