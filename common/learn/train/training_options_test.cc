// Tests that the options of Compile() and Fit() have the same effect with every
// strategy of one process as with one replica.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::UnorderedElementsAre;

constexpr int64_t kBatch = 8;
constexpr int64_t kExamples = 3 * kBatch + 3;  // Some replicas have none in the
                                               // last batch.
constexpr int64_t kFeatures = 3;

float Drawn(uint64_t stream, int64_t i) {
  return static_cast<float>(FoldIn(stream, i) % 2001) / 1000 - 1;
}

Tensor Features(uint64_t stream, int64_t width = kFeatures) {
  Tensor x(DType::kFloat32, {kExamples, width});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = Drawn(stream, i);
  }
  return x;
}

Tensor Classes(uint64_t stream, int64_t class_count) {
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<int64_t>()[i] =
        static_cast<int64_t>(FoldIn(stream, i) % class_count);
  }
  return y;
}

FitOptions Quiet(int epochs = 1) {
  return {.epochs = epochs, .verbose = Verbosity::kSilent};
}

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Strategy>()> make;
};

std::vector<Case> Strategies() {
  const auto mirrored = [](int count, int micro_batches) {
    MirroredStrategyOptions options{
        .thread_count = 1, .deterministic_micro_batches = micro_batches};
    for (int i = 0; i < count; ++i) {
      options.devices.push_back(absl::StrCat("cpu:", i));
    }
    return MirroredStrategy::Create(options).value();
  };
  return {
      {"Default",
       [] { return DefaultStrategy::Create({.thread_count = 1}).value(); }},
      {"OneDevice",
       [] { return OneDeviceStrategy::Create({.thread_count = 1}).value(); }},
      {"TwoReplicas", [mirrored] { return mirrored(2, 0); }},
      {"ThreeReplicas", [mirrored] { return mirrored(3, 0); }},
      {"Deterministic", [mirrored] { return mirrored(2, 4); }},
      {"CentralStorage",
       [] {
         return CentralStorageStrategy::Create(
                    {.compute_devices = {"cpu:0", "cpu:1"}, .thread_count = 1})
             .value();
       }},
  };
}

class TrainingOptionsTest : public ::testing::TestWithParam<Case> {
 protected:
  const std::unique_ptr<Strategy> strategy_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Strategies, TrainingOptionsTest,
                         ::testing::ValuesIn(Strategies()),
                         [](const auto& info) { return info.param.name; });

struct Trained {
  std::vector<std::vector<float>> weights;
  History history;
};

absl::StatusOr<Trained> Train(Strategy& strategy, Model model,
                              CompileOptions options, const Dataset& data,
                              const FitOptions& fit = Quiet(2)) {
  RETURN_IF_ERROR(model.Compile(strategy, std::move(options)));
  Trained trained;
  ASSIGN_OR_RETURN(trained.history, model.Fit(data, fit));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) trained.weights.push_back(Flat(weight));
  return trained;
}

std::unique_ptr<Strategy> Alone() {
  return DefaultStrategy::Create({.thread_count = 1}).value();
}

void ExpectSame(const Trained& got, const Trained& wanted) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_THAT(got.weights[i], Pointwise(FloatNear(2e-5), wanted.weights[i]));
  }
  ASSERT_EQ(got.history.history.size(), wanted.history.history.size());
  for (const auto& [name, values] : wanted.history.history) {
    ASSERT_EQ(got.history.history.count(name), 1u) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(got.history.history.at(name)[i], values[i], 2e-5) << name;
    }
  }
}

// A model with two inputs, each connected to one of two outputs.
Model TwoHeads() {
  const LayerOutput a = Input({kFeatures}, {.name = "a"});
  const LayerOutput b = Input({2}, {.name = "b"});
  const LayerOutput ya =
      Dense(1, {.kernel_initializer = Ones(), .name = "price"})(a);
  const LayerOutput yb =
      Dense(3, {.kernel_initializer = Ones(), .name = "kind"})(b);
  return Model({a, b}, {ya, yb});
}

Dataset TwoHeadsData() {
  return Dataset::FromTensorSlices(
             {Features(1), Features(2, 2), Features(3, 1), Classes(4, 3)})
      .Batch(kBatch);
}

CompileOptions TwoHeadsOptions() {
  return {
      .optimizer = Sgd({.learning_rate = 0.1}),
      .seed = 1,
      .losses = {MeanSquaredError(),
                 SparseCategoricalCrossentropy({.from_logits = true})},
      .output_metrics = {{MeanAbsoluteError()}, {SparseCategoricalAccuracy()}},
      .loss_weights = {2.0, 0.5}};
}

// Trains a model with one input and one output that corresponds to one of the
// heads.
absl::StatusOr<Trained> TrainHead(const Tensor& x, const Tensor& y,
                                  int64_t size, const Loss& loss,
                                  const Metric& metric, double weight) {
  const auto strategy = Alone();
  return Train(*strategy,
               Sequential({Dense(size, {.kernel_initializer = Ones()})}),
               {.optimizer = Sgd({.learning_rate = 0.1 * weight}),
                .loss = loss,
                .metrics = {metric}},
               Dataset::FromTensorSlices({x, y}).Batch(kBatch));
}

TEST_P(TrainingOptionsTest, EachOutputHasItsLossWeightAndMetrics) {
  ASSERT_OK_AND_ASSIGN(
      const Trained both,
      Train(*strategy_, TwoHeads(), TwoHeadsOptions(), TwoHeadsData()));
  ASSERT_OK_AND_ASSIGN(const Trained price,
                       TrainHead(Features(1), Features(3, 1), 1,
                                 MeanSquaredError(), MeanAbsoluteError(), 2.0));
  ASSERT_OK_AND_ASSIGN(
      const Trained kind,
      TrainHead(Features(2, 2), Classes(4, 3), 3,
                SparseCategoricalCrossentropy({.from_logits = true}),
                SparseCategoricalAccuracy(), 0.5));
  ASSERT_EQ(both.weights.size(), 4u);
  EXPECT_THAT(both.weights[0], Pointwise(FloatNear(2e-5), price.weights[0]));
  EXPECT_THAT(both.weights[2], Pointwise(FloatNear(2e-5), kind.weights[0]));
  const auto last = [](const Trained& trained, const std::string& name) {
    return trained.history.history.at(name).back();
  };
  EXPECT_NEAR(last(both, "price_loss"), last(price, "loss"), 2e-5);
  EXPECT_NEAR(last(both, "kind_loss"), last(kind, "loss"), 2e-5);
  EXPECT_NEAR(last(both, "loss"),
              2 * last(price, "loss") + 0.5 * last(kind, "loss"), 2e-5);
  EXPECT_NEAR(last(both, "price_mean_absolute_error"),
              last(price, "mean_absolute_error"), 2e-5);
  EXPECT_NEAR(last(both, "kind_sparse_categorical_accuracy"),
              last(kind, "sparse_categorical_accuracy"), 2e-5);
  EXPECT_EQ(both.history.example_count, 2 * kExamples);
}

TEST_P(TrainingOptionsTest, PredictsAndEvaluatesEveryOutput) {
  Model model = TwoHeads();
  ASSERT_OK(model.Compile(*strategy_, TwoHeadsOptions()));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> predictions,
                       model.PredictAll(TwoHeadsData()));
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_EQ(predictions[0].shape(), Shape({kExamples, 1}));
  EXPECT_EQ(predictions[1].shape(), Shape({kExamples, 3}));
  ASSERT_OK_AND_ASSIGN(
      const Logs logs,
      model.Evaluate(TwoHeadsData(), {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("loss"),
              2 * logs.at("price_loss") + 0.5 * logs.at("kind_loss"), 1e-5);
}

TEST_P(TrainingOptionsTest, AnOutputWithoutALossIsNotTrained) {
  CompileOptions options = TwoHeadsOptions();
  options.losses = {Loss(), options.losses[1]};
  Model model = TwoHeads();
  ASSERT_OK(model.Compile(*strategy_, options));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(TwoHeadsData(), Quiet()));
  EXPECT_EQ(history.history.count("price_loss"), 0u);
  EXPECT_EQ(history.history.count("price_mean_absolute_error"), 1u);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  EXPECT_THAT(Flat(weights[0]), ElementsAre(1, 1, 1));
}

TEST_P(TrainingOptionsTest, WeightsOfSamplesBelongToTheirOutput) {
  Tensor none = Tensor::Zeros(DType::kFloat32, {kExamples});
  Tensor ones(DType::kFloat32, {kExamples});
  for (float& weight : ones.mutable_flat<float>()) weight = 1;
  const Dataset data =
      Dataset::FromTensorSlices({Features(1), Features(2, 2), Features(3, 1),
                                 Classes(4, 3), none, ones})
          .Batch(kBatch);
  Model model = TwoHeads();
  ASSERT_OK(model.Compile(*strategy_, TwoHeadsOptions()));
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(data, Quiet()));
  EXPECT_EQ(history.history.at("price_loss").back(), 0);
  EXPECT_GT(history.history.at("kind_loss").back(), 0.1);
  ASSERT_OK_AND_ASSIGN(const Logs logs,
                       model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  EXPECT_EQ(logs.at("price_loss"), 0);
}

Dataset ClassData() {
  return Dataset::FromTensorSlices({Features(5), Classes(6, 3)}).Batch(kBatch);
}

CompileOptions ClassOptions() {
  return {.optimizer = Sgd({.learning_rate = 0.3}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .weighted_metrics = {SparseCategoricalAccuracy()},
          .seed = 3};
}

TEST_P(TrainingOptionsTest, ClassWeightsAreSampleWeightsByLabel) {
  const Tensor classes = Classes(6, 3);
  Tensor weights(DType::kFloat32, {kExamples});
  Tensor one_hot = Tensor::Zeros(DType::kFloat32, {kExamples, 3});
  for (int64_t i = 0; i < kExamples; ++i) {
    const int64_t label = classes.flat<int64_t>()[i];
    weights.mutable_flat<float>()[i] = label == 0 ? 0.2f : label == 1 ? 1 : 3;
    one_hot.mutable_flat<float>()[i * 3 + label] = 1;
  }
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      Train(*alone, Sequential({Dense(3)}), ClassOptions(),
            Dataset::FromTensorSlices({Features(5), classes, weights})
                .Batch(kBatch)));
  FitOptions fit = Quiet(2);
  fit.class_weight = {{0, 0.2}, {2, 3.0}};
  ASSERT_OK_AND_ASSIGN(const Trained sparse,
                       Train(*strategy_, Sequential({Dense(3)}), ClassOptions(),
                             ClassData(), fit));
  ExpectSame(sparse, wanted);

  const auto another = GetParam().make();
  CompileOptions options = ClassOptions();
  options.loss = CategoricalCrossentropy({.from_logits = true});
  options.weighted_metrics = {};
  ASSERT_OK_AND_ASSIGN(
      const Trained dense,
      Train(*another, Sequential({Dense(3)}), options,
            Dataset::FromTensorSlices({Features(5), one_hot}).Batch(kBatch),
            fit));
  EXPECT_THAT(dense.weights[0], Pointwise(FloatNear(2e-5), wanted.weights[0]));
}

TEST_P(TrainingOptionsTest, MetricsOfOneNameGetKerasNames) {
  CompileOptions options = ClassOptions();
  options.metrics = {SparseCategoricalAccuracy(), SparseCategoricalAccuracy()};
  Model model = Sequential({Dense(3)});
  ASSERT_OK(model.Compile(*strategy_, options));
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(ClassData(), Quiet()));
  std::vector<std::string> names;
  for (const auto& [name, values] : history.history) names.push_back(name);
  EXPECT_THAT(names,
              UnorderedElementsAre("loss", "sparse_categorical_accuracy",
                                   "sparse_categorical_accuracy_1",
                                   "weighted_sparse_categorical_accuracy"));
}

TEST_P(TrainingOptionsTest, PenaltiesCountOnceForAllReplicas) {
  for (const Reduction reduction :
       {Reduction::kSumOverBatchSize, Reduction::kSum}) {
    const auto train = [&](Strategy& strategy) {
      return Train(strategy,
                   Sequential({Dense(
                       3, {.kernel_regularizer = L1L2({.l1 = 0.02, .l2 = 0.1}),
                           .bias_regularizer = L2(0.5)})}),
                   {.optimizer = Sgd({.learning_rate = 0.02}),
                    .loss = SparseCategoricalCrossentropy(
                        {.from_logits = true, .reduction = reduction}),
                    .seed = 3},
                   // Every replica has data in each batch.
                   ClassData().Take(3));
    };
    const auto alone = Alone();
    const auto strategy = GetParam().make();
    ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
    ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy));
    ExpectSame(got, wanted);
  }
}

TEST_P(TrainingOptionsTest, PenaltiesAreInTheLossOfEvaluations) {
  Model model = Sequential({Dense(
      1, {.kernel_initializer = Ones(), .kernel_regularizer = L2(0.5)})});
  ASSERT_OK(model.Compile(*strategy_, {.loss = MeanSquaredError()}));
  const Tensor zeros = Tensor::Zeros(DType::kFloat32, {kExamples, kFeatures});
  ASSERT_OK_AND_ASSIGN(
      const Logs logs,
      model.Evaluate(
          Dataset::FromTensorSlices(
              {zeros, Tensor::Zeros(DType::kFloat32, {kExamples, 1})})
              .Batch(kBatch),
          {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("loss"), 0.5 * kFeatures, 1e-6);
}

TEST_P(TrainingOptionsTest, ClipsTheSumOverAllReplicas) {
  for (const OptimizerOptions& clipping :
       {OptimizerOptions{.clipnorm = 0.02}, OptimizerOptions{.clipvalue = 0.01},
        OptimizerOptions{.global_clipnorm = 0.03}}) {
    const auto train = [&](Strategy& strategy) {
      CompileOptions options = ClassOptions();
      options.optimizer = Sgd({.learning_rate = 0.5}, clipping);
      return Train(strategy, Sequential({Dense(4), Dense(3)}), options,
                   ClassData());
    };
    const auto alone = Alone();
    const auto strategy = GetParam().make();
    ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
    ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy));
    ExpectSame(got, wanted);
  }
}

TEST_P(TrainingOptionsTest, ClipsGradientsOfRowsByTheirNorm) {
  Tensor ids(DType::kInt64, {kExamples, 2});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(8, i) % 5);
  }
  const auto train = [&](Strategy& strategy) {
    CompileOptions options = ClassOptions();
    options.optimizer = Sgd({.learning_rate = 1.0}, {.global_clipnorm = 0.02});
    return Train(strategy, Sequential({Embedding(5, 2), Flatten(), Dense(3)}),
                 options,
                 Dataset::FromTensorSlices({ids, Classes(6, 3)}).Batch(kBatch));
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy_));
  ExpectSame(got, wanted);
}

TEST_P(TrainingOptionsTest, FrozenLayersStayAndHaveNoGradient) {
  const LayerPtr base = Dense(4, {.kernel_initializer = Ones()});
  base->set_trainable(false);
  Model model = Sequential({base, Dense(3)});
  ASSERT_OK(model.Compile(*strategy_, ClassOptions()));
  ASSERT_OK(model.Fit(ClassData(), Quiet()));
  EXPECT_EQ(model.trainable_weights().size(), 2u);
  EXPECT_THAT(model.Summary(), HasSubstr("Trainable params: 15 "));
  EXPECT_THAT(model.Summary(), HasSubstr("Non-trainable params: 16 "));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  for (const float value : Flat(weights[0])) EXPECT_EQ(value, 1);
  ASSERT_OK_AND_ASSIGN(
      const int64_t updates,
      strategy_->variables().UpdateCount(model.weights()[0].name()));
  EXPECT_EQ(updates, 0);

  base->set_trainable(true);
  ASSERT_OK(model.Fit(ClassData(), Quiet()));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> thawed, model.GetWeights());
  EXPECT_NE(Flat(thawed[0])[0], 1);
}

TEST_P(TrainingOptionsTest, BatchesOneByOneTrainLikeFit) {
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*alone, Sequential({Dense(3)}), ClassOptions(),
                             ClassData(), Quiet(1)));
  Model model = Sequential({Dense(3)});
  ASSERT_OK(model.Compile(*strategy_, ClassOptions()));
  ASSERT_OK_AND_ASSIGN(const auto iterator, ClassData().MakeIterator());
  Element batch;
  double loss = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const bool has_batch, iterator->Next(&batch));
    if (!has_batch) break;
    ASSERT_OK_AND_ASSIGN(const Logs before, model.TestOnBatch(batch));
    ASSERT_OK_AND_ASSIGN(const Logs logs, model.TrainOnBatch(batch));
    EXPECT_NEAR(logs.at("loss"), before.at("loss"), 1e-5);
    loss += logs.at("loss") * static_cast<double>(batch[0].shape().dim(0));
  }
  EXPECT_NEAR(loss / kExamples, wanted.history.history.at("loss")[0], 2e-5);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  EXPECT_THAT(Flat(weights[0]), Pointwise(FloatNear(2e-5), wanted.weights[0]));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> predictions,
                       model.PredictOnBatch({Features(5)}));
  EXPECT_EQ(predictions[0].shape(), Shape({kExamples, 3}));
}

// A custom step with the mean squared error.
std::vector<StepMetric> SquaresStep(const StepTrace& step) {
  const Value x = step.element[0];
  const Value errors = Square(step.Call(x) - step.element[1]);
  if (step.context.training) {
    SetLossDenominator(CountAlong(x, {0}));
    step.Minimize(Mean(errors));
  }
  return {{"loss", MeanStatistics(errors)},
          {"half", MeanStatistics(errors),
           [](absl::Span<const double> sums) { return MeanResult(sums) / 2; }}};
}

TEST_P(TrainingOptionsTest, CustomStepsReplaceThem) {
  const Dataset data =
      Dataset::FromTensorSlices({Features(1), Features(3, 1)}).Batch(kBatch);
  const Optimizer optimizer = Sgd({.learning_rate = 0.1}, {.clipnorm = 0.5});
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      Train(*alone, Sequential({Dense(1)}),
            {.optimizer = optimizer, .loss = MeanSquaredError(), .seed = 2},
            data));
  Model model = Sequential({Dense(1)});
  ASSERT_OK(model.Compile(*strategy_, {.optimizer = optimizer,
                                       .seed = 2,
                                       .train_step = SquaresStep,
                                       .test_step = SquaresStep}));
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(data, Quiet(2)));
  EXPECT_NEAR(history.history.at("loss")[1],
              wanted.history.history.at("loss")[1], 2e-5);
  EXPECT_NEAR(history.history.at("half")[1],
              wanted.history.history.at("loss")[1] / 2, 2e-5);
  EXPECT_EQ(history.example_count, 2 * kExamples);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  EXPECT_THAT(Flat(weights[0]), Pointwise(FloatNear(2e-5), wanted.weights[0]));
  ASSERT_OK_AND_ASSIGN(const Logs logs,
                       model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("half"), logs.at("loss") / 2, 1e-9);
}

// Records which steps begin and end.
class StepRecorder final : public Callback {
 public:
  absl::Status OnTrainBatchBegin(Model&, int64_t step) override {
    begun.push_back(step);
    return absl::OkStatus();
  }
  absl::Status OnTrainBatchEnd(Model&, int64_t step, const Logs&) override {
    ended.push_back(step);
    return absl::OkStatus();
  }
  std::vector<int64_t> begun, ended;
};

TEST_P(TrainingOptionsTest, HooksAreCalledOnceForTheStepsOfAnExecution) {
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*alone, Sequential({Dense(3)}), ClassOptions(),
                             ClassData(), Quiet(1)));
  StepRecorder recorder;
  FitOptions fit = Quiet(1);
  fit.callbacks = {&recorder};
  CompileOptions options = ClassOptions();
  options.steps_per_execution = 3;
  ASSERT_OK_AND_ASSIGN(
      const Trained got,
      Train(*strategy_, Sequential({Dense(3)}), options, ClassData(), fit));
  EXPECT_THAT(recorder.begun, ElementsAre(0, 3));
  EXPECT_THAT(recorder.ended, ElementsAre(2, 3));
  ExpectSame(got, wanted);
}

TEST_P(TrainingOptionsTest, ValidatesAfterTheEpochsThatAreAskedFor) {
  Model model = Sequential({Dense(3)});
  ASSERT_OK(model.Compile(*strategy_, ClassOptions()));
  FitOptions fit = Quiet(5);
  fit.validation_data = ClassData();
  fit.validation_freq = {2, 5};
  fit.initial_epoch = 1;
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(ClassData(), fit));
  EXPECT_EQ(history.history.at("loss").size(), 4u);
  EXPECT_EQ(history.history.at("val_loss").size(), 2u);
}

void ExpectRefused(const CompileOptions& options, const FitOptions& fit,
                   const std::string& why) {
  const auto strategy = Alone();
  EXPECT_THAT(Train(*strategy, TwoHeads(), options, TwoHeadsData(), fit),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
}

TEST(TrainingOptions, RefusesWhatDoesNotFitTheOutputs) {
  CompileOptions options = TwoHeadsOptions();
  options.losses.pop_back();
  ExpectRefused(options, Quiet(), "losses has 1 entries");
  options = TwoHeadsOptions();
  options.loss_weights = {1, 2, 3};
  ExpectRefused(options, Quiet(), "loss_weights has 3 entries");
  options = TwoHeadsOptions();
  options.loss = MeanSquaredError();
  ExpectRefused(options, Quiet(), "both loss and losses");
  options = TwoHeadsOptions();
  options.output_metrics = {};
  options.metrics = {MeanAbsoluteError()};
  ExpectRefused(options, Quiet(), "the metrics of each");
  options = TwoHeadsOptions();
  options.losses[0] = MeanSquaredError({.reduction = Reduction::kSum});
  ExpectRefused(options, Quiet(), "the same reduction");
  FitOptions fit = Quiet();
  fit.class_weight = {{0, 2.0}};
  ExpectRefused(TwoHeadsOptions(), fit, "models with one output");
  fit.class_weight = {{-1, 2.0}};
  ExpectRefused(TwoHeadsOptions(), fit, "class -1");
  fit = Quiet();
  fit.validation_freq = 0;
  ExpectRefused(TwoHeadsOptions(), fit, "validation_freq");
}

TEST(TrainingOptions, RefusesTwoWaysOfClipping) {
  Model model = Sequential({Dense(1)});
  EXPECT_THAT(
      model.Compile({.optimizer = Adam({}, {.clipnorm = 1, .clipvalue = 1}),
                     .loss = MeanSquaredError()}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("only one of")));
  EXPECT_THAT(model.Compile({.optimizer = Adam({}, {.clipnorm = -1}),
                             .loss = MeanSquaredError()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("clipnorm is -1")));
  EXPECT_THAT(
      model.Compile({.loss = MeanSquaredError(), .steps_per_execution = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("steps_per_execution")));
}

}  // namespace
}  // namespace muster
