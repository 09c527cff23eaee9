#include "common/learn/train/model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/epoch_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// {x, y} with x = 0, 1, 2, ... and y = 0.
Dataset Counting(int64_t count) {
  Tensor x(DType::kFloat32, {count, 1});
  for (int64_t i = 0; i < count; ++i) {
    x.mutable_flat<float>()[i] = static_cast<float>(i);
  }
  return Dataset::FromTensorSlices(
      {x, Tensor::Zeros(DType::kFloat32, {count, 1})});
}

// Predicts its input.
Model Echo() {
  return Sequential(
      {Dense(1, {.use_bias = false, .kernel_initializer = Ones()})});
}

CompileOptions Frozen() {
  return {.optimizer = Sgd({.learning_rate = 0.0}),
          .loss = MeanSquaredError(),
          .metrics = {MeanOfPredictions()}};
}

FitOptions Quiet(int epochs = 1) {
  return {.epochs = epochs, .verbose = Verbosity::kSilent};
}

// A strategy whose steps end in the reverse of the order in which they began.
class BackwardsStrategy final : public Strategy {
 public:
  absl::string_view name() const override { return "backwards"; }
  int num_replicas_in_sync() const override { return 1; }
  bool draws_from_copies() const override { return false; }
  VariableStore& variables() override { return inner_->variables(); }
  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph& step,
                                                       const Dataset& dataset,
                                                       LoopKind kind) override {
    ASSIGN_OR_RETURN(std::unique_ptr<StepLoop> inner,
                     inner_->CreateLoop(step, dataset, kind));
    // Predictions must be in order.
    if (kind == LoopKind::kPredict) return inner;
    return std::make_unique<Loop>(std::move(inner));
  }
  const WorkerAgreement& agreement() const override {
    return inner_->agreement();
  }
  TrainingRecovery* recovery() override { return inner_->recovery(); }
  StrategyReport Report() const override { return inner_->Report(); }

 private:
  class Loop final : public StepLoop {
   public:
    explicit Loop(std::unique_ptr<StepLoop> inner) : inner_(std::move(inner)) {}
    absl::StatusOr<Outcome> Run(int64_t max, OnStep on_step) override {
      std::vector<std::vector<Tensor>> all;
      ASSIGN_OR_RETURN(const Outcome outcome,
                       inner_->Run(max, [&](absl::Span<const Tensor> results) {
                         std::vector<Tensor>& kept = all.emplace_back();
                         for (const Tensor& result : results) {
                           kept.push_back(result.Clone());
                         }
                         return absl::OkStatus();
                       }));
      std::reverse(all.begin(), all.end());
      for (const std::vector<Tensor>& results : all) {
        RETURN_IF_ERROR(on_step(results));
      }
      return outcome;
    }
    SeekableLoop* seekable() override { return inner_->seekable(); }
    StoppableLoop* stoppable() override { return inner_->stoppable(); }
    GroupingLoop* grouping() override { return inner_->grouping(); }

   private:
    const std::unique_ptr<StepLoop> inner_;
  };

  const std::unique_ptr<Strategy> inner_ = DefaultStrategy::Create().value();
};

TEST(ModelTest, LossIsTheMeanOverExamplesThoughTheLastBatchIsSmaller) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  // The mean of the squares of 0 to 4. A mean of the means of {0, 1, 2, 3} and
  // {4} would be 9.75.
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Counting(5).Batch(4), Quiet()));
  EXPECT_THAT(history.history.at("loss"), ElementsAre(30.0 / 5));
  EXPECT_THAT(history.history.at("mean"), ElementsAre(2.0));
  EXPECT_EQ(history.step_count, 2);
  EXPECT_EQ(history.example_count, 5);
}

TEST(ModelTest, LearnsALine) {
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       DefaultStrategy::Create({.thread_count = 1}));
  Model model = Sequential({Dense(1)});
  ASSERT_OK(
      model.Compile(*strategy, {.optimizer = Adam({.learning_rate = 0.05}),
                                .loss = MeanSquaredError(),
                                .metrics = {MeanAbsoluteError()}}));
  const Dataset data = Synthetic({.example_count = 256,
                                  .feature_count = 3,
                                  .class_count = 0,
                                  .noise = 0.01})
                           .Shuffle(256, {.seed = 1})
                           .Batch(32);
  FitOptions options = Quiet(30);
  options.validation_data = data;
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(data, options));
  EXPECT_THAT(history.epoch, SizeIs(30));
  EXPECT_LT(history.history.at("loss").back(), 0.01);
  EXPECT_LT(history.history.at("val_loss").back(), 0.01);
  EXPECT_LT(history.history.at("val_mean_absolute_error").back(), 0.1);
  ASSERT_OK_AND_ASSIGN(const Logs logs,
                       model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("loss"), history.history.at("val_loss").back(), 1e-5);
}

TEST(ModelTest, DataContinueAcrossEpochsAndRestartAtTheirEnd) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  FitOptions options = Quiet(5);
  options.steps_per_epoch = 2;
  // The results of Keras 3 for the same data.
  ASSERT_OK_AND_ASSIGN(const History even,
                       model.Fit(Counting(6).Batch(1), options));
  EXPECT_THAT(even.history.at("mean"), ElementsAre(0.5, 2.5, 4.5, 0.5, 2.5));
  ASSERT_OK_AND_ASSIGN(const History odd,
                       model.Fit(Counting(5).Batch(1), options));
  EXPECT_THAT(odd.history.at("mean"), ElementsAre(0.5, 2.5, 4, 0.5, 2.5));
}

TEST(ModelTest, DataWithoutEndGoesOnAcrossEpochs) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  FitOptions options = Quiet(2);
  options.steps_per_epoch = 2;
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Counting(6).Batch(1).Repeat(), options));
  EXPECT_THAT(history.history.at("mean"), ElementsAre(0.5, 2.5));
}

TEST(ModelTest, AnEpochEndsWhereTheDataEnd) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  FitOptions options = Quiet(3);
  options.steps_per_epoch = 4;
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Counting(3).Batch(1), options));
  EXPECT_THAT(history.history.at("mean"), ElementsAre(1, 1, 1));
  EXPECT_EQ(history.step_count, 9);
}

TEST(ModelTest, RefusesDataWithoutBatchesOrWithoutEnd) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  EXPECT_THAT(
      model.Fit(Counting(3).Take(0).Batch(1), Quiet()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no batches")));
  EXPECT_THAT(model.Fit(Counting(3).Batch(1).Repeat(), Quiet()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("steps_per_epoch")));
  EXPECT_THAT(
      model.Evaluate(Counting(3).Batch(1).Repeat(),
                     {.verbose = Verbosity::kSilent}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("never ends")));
  EXPECT_THAT(model.Fit(Dataset::Range(3).Batch(2), Quiet()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected batches {x, y}")));
}

TEST(ModelTest, BelongsToTheStrategyInScope) {
  ASSERT_OK_AND_ASSIGN(const auto strategy, DefaultStrategy::Create());
  ASSERT_OK_AND_ASSIGN(const auto other, DefaultStrategy::Create());
  ASSERT_OK_AND_ASSIGN(const StrategyScope scope,
                       StrategyScope::Enter(*strategy));
  Model model = Sequential({Dense(1)});
  ASSERT_OK(model.Compile({.loss = MeanSquaredError()}));
  EXPECT_EQ(model.strategy(), strategy.get());
  Model stranger = Sequential({Dense(1)});
  EXPECT_THAT(stranger.Compile(*other, {.loss = MeanSquaredError()}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("in the scope of strategy \"default\"")));
}

TEST(ModelTest, RefusesToWorkBeforeItIsCompiled) {
  Model model = Echo();
  EXPECT_THAT(
      model.Fit(Counting(3).Batch(1)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Compile()")));
}

TEST(ModelTest, SampleWeightsCountInLossAndWeightedMetrics) {
  Model model = Echo();
  CompileOptions options = Frozen();
  options.weighted_metrics = {MeanOfPredictions("weighted")};
  ASSERT_OK(model.Compile(options));
  const Dataset data =
      Dataset::FromTensorSlices({Tensor::FromValues<float>({2, 1}, {1, 3}),
                                 Tensor::Zeros(DType::kFloat32, {2, 1}),
                                 Tensor::FromValues<float>({2}, {1, 0})});
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(data.Batch(2), Quiet()));
  EXPECT_THAT(history.history.at("loss"), ElementsAre(0.5));
  EXPECT_THAT(history.history.at("mean"), ElementsAre(2.0));
  EXPECT_THAT(history.history.at("weighted"), ElementsAre(1.0));
}

TEST(ModelTest, PredictsInTheOrderOfTheDataThoughStepsEndInAnother) {
  BackwardsStrategy strategy;
  Model model = Echo();
  ASSERT_OK(model.Compile(strategy, Frozen()));
  ASSERT_OK_AND_ASSIGN(const Tensor predictions,
                       model.Predict(Counting(5).Batch(2)));
  EXPECT_EQ(predictions.shape(), Shape({5, 1}));
  EXPECT_THAT(predictions.flat<float>(), ElementsAre(0, 1, 2, 3, 4));
}

TEST(ModelTest, MetricsDoNotDependOnTheOrderOfSteps) {
  BackwardsStrategy strategy;
  Model model = Echo();
  ASSERT_OK(model.Compile(strategy, Frozen()));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Counting(5).Batch(4), Quiet()));
  EXPECT_THAT(history.history.at("loss"), ElementsAre(6.0));
}

// Returns the weights after two epochs of training that uses every kind of
// random number.
std::vector<Tensor> TrainedWeights(uint64_t seed) {
  Model model = Sequential({
      Dense(8, {.activation = Activation::kRelu}),
      Dropout(0.5),
      Dense(2),
  });
  EXPECT_OK(model.Compile(
      {.optimizer = Adam(),
       .loss = SparseCategoricalCrossentropy({.from_logits = true}),
       .seed = seed}));
  const Dataset data = Synthetic({.example_count = 64, .feature_count = 4})
                           .Shuffle(64, {.seed = seed})
                           .Batch(16);
  EXPECT_OK(model.Fit(data, Quiet(2)));
  return model.GetWeights().value();
}

TEST(ModelTest, TheSameSeedGivesTheSameBits) {
  const std::vector<Tensor> first = TrainedWeights(7);
  const std::vector<Tensor> again = TrainedWeights(7);
  const std::vector<Tensor> other = TrainedWeights(8);
  ASSERT_THAT(first, SizeIs(4));
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual(first[i], again[i])) << i;
    EXPECT_FALSE(BitwiseEqual(first[i], other[i])) << i;
  }
}

TEST(ModelTest, EmbeddingsTrainOnlyTheRowsThatOccur) {
  Model model = Sequential({Embedding(6, 2), Flatten(), Dense(1)});
  ASSERT_OK(model.Compile(
      {.optimizer = Sgd({.learning_rate = 0.1}), .loss = MeanSquaredError()}));
  ASSERT_OK(model.Build({DType::kInt32, {Shape::kUnknown, 2}}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> before, model.GetWeights());
  const Tensor rows_before = before[0].Clone();
  const Dataset data = Dataset::FromTensorSlices(
      {Tensor::FromValues<int32_t>({2, 2}, {1, 4, 4, 1}),
       Tensor::FromValues<float>({2, 1}, {1, 1})});
  ASSERT_OK(model.Fit(data.Batch(2), Quiet()));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, model.GetWeights());
  for (int64_t row = 0; row < 6; ++row) {
    const bool occurs = row == 1 || row == 4;
    EXPECT_NE(BitwiseEqual(rows_before.SliceRows(row, row + 1),
                           after[0].SliceRows(row, row + 1)),
              occurs)
        << row;
  }
}

class Stopper final : public Callback {
 public:
  absl::Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    ended_epochs.push_back(epoch);
    EXPECT_EQ(logs.count("loss"), 1u);
    return absl::OkStatus();
  }
  absl::Status OnTrainBatchEnd(Model& model, int64_t, const Logs&) override {
    if (++steps == 4) model.StopTraining();
    return absl::OkStatus();
  }
  int64_t steps = 0;
  std::vector<int> ended_epochs;
};

TEST(ModelTest, ACallbackStopsTrainingAfterTheStepAtHand) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  Stopper stopper;
  FitOptions options = Quiet(9);
  options.callbacks = {&stopper};
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Counting(3).Batch(1), options));
  EXPECT_EQ(stopper.steps, 4);
  EXPECT_THAT(stopper.ended_epochs, ElementsAre(0, 1));
  EXPECT_EQ(history.step_count, 4);
}

// Names are checked before training, not when the weights are saved.
TEST(ModelTest, NamesThatCannotBeSavedAreRefusedBeforeTheFirstStep) {
  for (const std::string name : {"/x", "a//b", "a/"}) {
    const absl::Status status = [&] {
      Model model = Sequential({Input({1}), Dense(1, {.name = name})});
      return model.Compile(Frozen());
    }();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(absl::StrCat("\"", name))));
    // Without an input layer, shapes are unknown until the model gets data.
    Model model = Sequential({Dense(1, {.name = name})});
    ASSERT_OK(model.Compile(Frozen()));
    Stopper stopper;
    FitOptions options = Quiet();
    options.callbacks = {&stopper};
    EXPECT_THAT(model.Fit(Counting(4).Batch(2), options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("\"", name))));
    EXPECT_EQ(stopper.steps, 0);
  }
}

class Recorder final : public Callback {
 public:
  absl::Status OnTrainBegin(Model&) override { return Note("train"); }
  absl::Status OnTrainEnd(Model&, const Logs&) override {
    return Note("train.");
  }
  absl::Status OnEpochBegin(Model&, int epoch) override {
    return Note("epoch", epoch);
  }
  absl::Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    EXPECT_EQ(logs.count("loss"), 1u);
    return Note("epoch.", epoch);
  }
  absl::Status OnTrainBatchBegin(Model&, int64_t step) override {
    return Note("batch", step);
  }
  absl::Status OnTrainBatchEnd(Model&, int64_t step,
                               const Logs& logs) override {
    EXPECT_EQ(logs.count("loss"), 1u);
    return Note("batch.", step);
  }
  absl::Status OnTestBegin(Model&) override { return Note("test"); }
  absl::Status OnTestEnd(Model&, const Logs& logs) override {
    EXPECT_EQ(logs.count("loss"), 1u);
    return Note("test.");
  }
  absl::Status OnTestBatchBegin(Model&, int64_t step) override {
    return Note("test batch", step);
  }
  absl::Status OnTestBatchEnd(Model&, int64_t step, const Logs& logs) override {
    EXPECT_EQ(logs.count("loss"), 1u);
    return Note("test batch.", step);
  }

  std::vector<std::string> calls;

 private:
  absl::Status Note(absl::string_view hook) {
    calls.push_back(std::string(hook));
    return absl::OkStatus();
  }
  absl::Status Note(absl::string_view hook, int64_t number) {
    calls.push_back(absl::StrCat(hook, " ", number));
    return absl::OkStatus();
  }
};

TEST(ModelTest, CallbacksAreToldOfEverythingInItsOrder) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  Recorder recorder;
  FitOptions options = Quiet();
  options.validation_data = Counting(1).Batch(1);
  options.callbacks = {&recorder};
  ASSERT_OK(model.Fit(Counting(3).Batch(2), options));
  EXPECT_THAT(recorder.calls,
              ElementsAre("train", "epoch 0", "batch 0", "batch. 0", "batch 1",
                          "batch. 1", "test", "test batch 0", "test batch. 0",
                          "test.", "epoch. 0", "train."));
}

TEST(ModelTest, EvaluateCallsTheHooksOfTests) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  Recorder recorder;
  ASSERT_OK(model.Evaluate(Counting(2).Batch(1), {.verbose = Verbosity::kSilent,
                                                  .callbacks = {&recorder}}));
  EXPECT_THAT(recorder.calls,
              ElementsAre("test", "test batch 0", "test batch. 0",
                          "test batch 1", "test batch. 1", "test."));
}

class Failing final : public Callback {
 public:
  absl::Status OnEpochEnd(Model&, int, Logs&) override {
    return absl::DataLossError("disk is full");
  }
};

TEST(ModelTest, AnErrorOfACallbackComesOutOfFit) {
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  Failing failing;
  FitOptions options = Quiet();
  options.callbacks = {&failing};
  EXPECT_THAT(model.Fit(Counting(3).Batch(1), options),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("disk")));
}

TEST(ModelTest, PrintsAnEpochLineAndProgressWithValidationAtTheEnd) {
  SimulatedClock clock;
  std::ostringstream output;
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  ASSERT_OK(
      model.Fit(Counting(3).Batch(1), {.epochs = 2,
                                       .validation_data = Counting(2).Batch(2),
                                       .verbose = Verbosity::kLines,
                                       .output = &output,
                                       .clock = &clock}));
  EXPECT_EQ(output.str(),
            "Epoch 1/2\n3/3 - 0s - 0s/step - loss: 1.6667 - mean: 1.0000 - "
            "val_loss: 0.5000 - val_mean: 0.5000\n"
            "Epoch 2/2\n3/3 - 0s - 0s/step - loss: 1.6667 - mean: 1.0000 - "
            "val_loss: 0.5000 - val_mean: 0.5000\n");
}

TEST(ModelTest, RefusesToMoveItsWeightsToAnotherStrategy) {
  BackwardsStrategy strategy;
  Model model = Echo();
  ASSERT_OK(model.Compile(Frozen()));
  ASSERT_OK(model.Build({DType::kFloat32, {Shape::kUnknown, 1}}));
  EXPECT_THAT(model.Compile(strategy, Frozen()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"default\"")));
  EXPECT_OK(model.Compile(Frozen()));
}

TEST(ModelTest, GetWeightsReturnsWhatSetWeightsSet) {
  Model model = Sequential({Dense(2)});
  ASSERT_OK(model.Compile(Frozen()));
  ASSERT_OK(model.Build({DType::kFloat32, {Shape::kUnknown, 1}}));
  const std::vector<Tensor> values = {Tensor::FromValues<float>({1, 2}, {1, 2}),
                                      Tensor::FromValues<float>({2}, {3, 4})};
  ASSERT_OK(model.SetWeights(values));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, model.GetWeights());
  EXPECT_TRUE(BitwiseEqual(got[0], values[0]));
  EXPECT_TRUE(BitwiseEqual(got[1], values[1]));
  EXPECT_THAT(model.SetWeights({values[0]}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 2 weights, got 1")));
}

TEST(ModelTest, SummaryIsKerasTable) {
  Model model = Sequential({Flatten(), Dense(256)});
  ASSERT_OK(model.Compile(Frozen()));
  ASSERT_OK(model.Build({DType::kFloat32, {Shape::kUnknown, 28, 28}}));
  const std::string summary = model.Summary();
  EXPECT_THAT(summary, HasSubstr("Model: \"sequential\"\n┏━"));
  EXPECT_THAT(summary,
              HasSubstr("│ dense (Dense)                   │ (None, 256)"
                        "            │       200,960 │\n"));
  EXPECT_THAT(summary, HasSubstr(" Total params: 200,960 (785.00 KB)\n"
                                 " Trainable params: 200,960 (785.00 KB)\n"
                                 " Non-trainable params: 0 (0.00 B)\n"));
}

TEST(PlanEpochsTest, CopiesOfDataAreRepeated) {
  ASSERT_OK_AND_ASSIGN(const EpochPlan plan,
                       PlanEpochs(Counting(6).Batch(4), std::nullopt, true));
  EXPECT_EQ(plan.steps_max, 2);
  EXPECT_EQ(plan.steps_expected, 2);
  EXPECT_EQ(plan.data.Cardinality(), Dataset::kInfinite);
}

TEST(PlanEpochsTest, CopiesOfEndlessDataNeedALength) {
  EXPECT_THAT(PlanEpochs(Counting(6).Batch(4).Repeat(), std::nullopt, true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("steps_per_epoch")));
}

}  // namespace
}  // namespace muster
