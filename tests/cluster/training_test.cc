// Fit() and Evaluate() on parameter servers: the effect of each option.

#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/duration_histogram.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/net/rpc/fault_point.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"
#include "worker/testing/test_worker.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExamples = 64;

Dataset Data() {
  Tensor x(DType::kFloat32, {kExamples, 3});
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(2, i) % 3);
  }
  return Dataset::FromTensorSlices({x, y});
}

FitOptions Quiet(int epochs = 1) {
  return {.epochs = epochs, .verbose = Verbosity::kSilent};
}

// Adds one to the bias. Float32 counts integers exactly.
std::vector<StepMetric> CountingStep(const StepTrace& step) {
  const Value prediction = step.Call(step.element[0]);
  const Value count = Cast(CountAlong(prediction, {0}), prediction.dtype());
  step.Minimize(-Sum(prediction) / count);
  return {{"steps", MeanStatistics(prediction * 0.0 + 1.0)}};
}

// The gradient of the bias does not depend on the data.
Model Counter() { return Sequential({Dense(1)}); }

CompileOptions CounterOptions(int steps_per_execution) {
  return {.optimizer = Sgd({.learning_rate = 1.0}),
          .loss = MeanSquaredError(),
          .steps_per_execution = steps_per_execution,
          .train_step = CountingStep};
}

double Bias(Model& model) {
  const absl::StatusOr<std::vector<Tensor>> weights = model.GetWeights();
  EXPECT_OK(weights.status());
  return (*weights)[1].flat<float>()[0];
}

// Calls a function after each step, or after each batch of an evaluation.
class AfterSteps final : public Callback {
 public:
  using Action = std::function<absl::Status(Model&, int64_t step)>;
  explicit AfterSteps(Action action) : action_(std::move(action)) {}
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override {
    EXPECT_FALSE(logs.empty());
    steps.push_back(step);
    return action_(model, step);
  }
  absl::Status OnTestBatchEnd(Model& model, int64_t step,
                              const Logs&) override {
    steps.push_back(step);
    return action_(model, step);
  }
  std::vector<int64_t> steps;

 private:
  const Action action_;
};

class TrainingTest : public ::testing::Test {
 protected:
  std::unique_ptr<ParameterServerStrategy> Connect(TestCluster& cluster) {
    ClusterConnection::Options options;
    options.attempts_per_closure_max = 1000;
    auto strategy = cluster.Connect(options);
    EXPECT_OK(strategy.status());
    return *std::move(strategy);
  }
  static int64_t Finished(ParameterServerStrategy& strategy) {
    return strategy.connection()->dispatcher().counters().finished_count;
  }
};

TEST_F(TrainingTest, RunsStepsPerExecutionInOneClosure) {
  TestCluster cluster(2, 2);
  const auto strategy = Connect(cluster);
  Model model = Counter();
  ASSERT_OK(model.Compile(*strategy, CounterOptions(8)));
  AfterSteps recorder([](Model&, int64_t) { return absl::OkStatus(); });
  FitOptions fit = Quiet(2);
  fit.steps_per_epoch = 20;
  fit.callbacks = {&recorder};
  const int64_t before = Finished(*strategy);
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Data().Batch(4).Repeat(), fit));
  EXPECT_EQ(history.step_count, 40);
  EXPECT_EQ(history.example_count, 160);
  EXPECT_EQ(Bias(model), 40);
  EXPECT_EQ(Finished(*strategy) - before, 6);  // 8 + 8 + 4 steps, twice.
  EXPECT_THAT(recorder.steps, ::testing::ElementsAre(7, 15, 19, 7, 15, 19));
  EXPECT_EQ(history.history.at("steps").back(), 1);
}

TEST_F(TrainingTest, StepDurationsAreThoseOnTheWorkers) {
  TestCluster cluster(1, 1);
  const auto strategy = Connect(cluster);
  Model model = Counter();
  ASSERT_OK(model.Compile(*strategy, CounterOptions(1)));
  constexpr absl::Duration kDelay = absl::Milliseconds(200);
  SetFaults({{.point = "worker.before_report",
              .occurrence = 3,
              .action = FaultAction::kDelay,
              .delay = kDelay}});
  FitOptions fit = Quiet();
  fit.steps_per_epoch = 8;
  const absl::StatusOr<History> history =
      model.Fit(Data().Batch(4).Repeat(), fit);
  SetFaults({});
  ASSERT_OK(history.status());
  const DurationHistogram& durations = history->step_durations;
  // The first step counts too: the worker measures its duration.
  EXPECT_EQ(durations.count(), 8);
  EXPECT_GT(durations.Percentile(1), absl::Microseconds(1));
  EXPECT_LT(durations.Percentile(50), kDelay);
  EXPECT_GT(durations.total(), kDelay);
}

TEST_F(TrainingTest, StepsOfAnExecutionCountOnceWhileWorkersDie) {
  TestCluster cluster(3, 2);
  const auto strategy = Connect(cluster);
  Model model = Counter();
  ASSERT_OK(model.Compile(*strategy, CounterOptions(5)));
  RandomStream random(FoldIn(31, "kills"));
  AfterSteps killer([&](Model&, int64_t step) {
    if (step % 40 != 4) return absl::OkStatus();
    TestWorker& victim = cluster.worker(static_cast<int>(random.Below(2)));
    victim.running() ? victim.Kill() : victim.Start();
    return absl::OkStatus();
  });
  FitOptions fit = Quiet();
  fit.steps_per_epoch = 600;
  fit.callbacks = {&killer};
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Data().Batch(4).Repeat(), fit));
  EXPECT_EQ(history.step_count, 600);
  EXPECT_EQ(Bias(model), 600);
}

TEST_F(TrainingTest, CallbacksRunDuringTheEpochAndCanStopIt) {
  TestCluster cluster(2, 1);
  const auto strategy = Connect(cluster);
  Model model = Counter();
  ASSERT_OK(model.Compile(*strategy, CounterOptions(1)));
  AfterSteps stopper([](Model& model, int64_t step) {
    if (step == 9) model.StopTraining();
    return absl::OkStatus();
  });
  FitOptions fit = Quiet(3);
  fit.steps_per_epoch = 1'000'000'000;
  fit.callbacks = {&stopper};
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Data().Batch(4).Repeat(), fit));
  EXPECT_EQ(history.step_count, 10);
  EXPECT_EQ(history.epoch.size(), 1u);
}

TEST_F(TrainingTest, AnEpochIsOnePassOverTheDataByDefault) {
  TestCluster cluster(3, 1);
  const auto strategy = Connect(cluster);
  Model model = Counter();
  ASSERT_OK(model.Compile(*strategy, CounterOptions(1)));
  ASSERT_OK_AND_ASSIGN(const History history,
                       model.Fit(Data().Batch(16), Quiet(2)));
  EXPECT_EQ(history.step_count, 8);
  EXPECT_EQ(Bias(model), 8);
}

CompileOptions ClassifierOptions() {
  return {.optimizer = Sgd({.learning_rate = 0.5}, {.global_clipnorm = 0.1}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {SparseCategoricalAccuracy()},
          .seed = 9};
}

Model Classifier() {
  return Sequential({Dense(4, {.kernel_regularizer = L2(0.02)}), Dense(3)});
}

TEST_F(TrainingTest, EvaluatesEachExampleOnceWhileWorkersDie) {
  const auto evaluate =
      [](Strategy& strategy,
         std::vector<Callback*> callbacks) -> absl::StatusOr<Logs> {
    Model model = Classifier();
    RETURN_IF_ERROR(model.Compile(strategy, ClassifierOptions()));
    return model.Evaluate(Data().Batch(5), {.verbose = Verbosity::kSilent,
                                            .callbacks = std::move(callbacks)});
  };
  ASSERT_OK_AND_ASSIGN(const auto alone, DefaultStrategy::Create());
  ASSERT_OK_AND_ASSIGN(const Logs wanted, evaluate(*alone, {}));
  TestCluster cluster(2, 2);
  const auto strategy = Connect(cluster);
  AfterSteps killer([&](Model&, int64_t step) {
    if (step == 2) cluster.worker(0).Kill();
    if (step == 5) cluster.worker(0).Start();
    if (step == 6) cluster.worker(1).Kill();
    return absl::OkStatus();
  });
  const int64_t before = Finished(*strategy);
  ASSERT_OK_AND_ASSIGN(const Logs got, evaluate(*strategy, {&killer}));
  EXPECT_EQ(Finished(*strategy) - before, (kExamples + 4) / 5);
  EXPECT_NEAR(got.at("loss"), wanted.at("loss"), 1e-6);
  EXPECT_EQ(got.at("sparse_categorical_accuracy"),
            wanted.at("sparse_categorical_accuracy"));
}

// The results of several steps are received together, including the first one.
TEST_F(TrainingTest, AnEvaluationShowsTheMeanTimeOfAllSteps) {
  TestCluster cluster(2, 1);
  const auto strategy = Connect(cluster);
  Model model = Classifier();
  ASSERT_OK(model.Compile(*strategy, ClassifierOptions()));
  constexpr int64_t kSteps = (kExamples + 4) / 5;
  SimulatedClock clock;
  std::ostringstream output;
  AfterSteps timer([&](Model&, int64_t step) {
    if (step == 2) clock.Advance(kSteps * absl::Milliseconds(500));
    return absl::OkStatus();
  });
  ASSERT_OK(model.Evaluate(Data().Batch(5), {.verbose = Verbosity::kLines,
                                             .callbacks = {&timer},
                                             .output = &output,
                                             .clock = &clock}));
  EXPECT_THAT(output.str(), HasSubstr("s - 500ms/step"));
}

Element Arrays() {
  const auto batch = Data().Batch(kExamples).MakeIterator();
  EXPECT_OK(batch.status());
  Element arrays;
  EXPECT_OK((*batch)->Next(&arrays).status());
  return arrays;
}

TEST_F(TrainingTest, OneWorkerTrainsOnArraysLikeOneProcess) {
  const auto train = [](Strategy& strategy) -> absl::StatusOr<History> {
    Model model = Classifier();
    RETURN_IF_ERROR(model.Compile(strategy, ClassifierOptions()));
    FitOptions fit = Quiet(2);
    fit.batch_size = 8;
    fit.validation_split = 0.3;
    return model.Fit(Arrays(), fit);
  };
  ASSERT_OK_AND_ASSIGN(const auto alone,
                       DefaultStrategy::Create({.thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const History wanted, train(*alone));
  TestCluster cluster(1, 2);
  const auto strategy = Connect(cluster);
  ASSERT_OK_AND_ASSIGN(const History got, train(*strategy));
  ASSERT_EQ(got.history.size(), wanted.history.size());
  for (const auto& [name, values] : wanted.history) {
    EXPECT_THAT(got.history.at(name), Pointwise(FloatNear(1e-5), values))
        << name;
  }
}

TEST_F(TrainingTest, SeveralWorkersTrainEvaluateAndPredictArrays) {
  TestCluster cluster(2, 1);
  const auto strategy = Connect(cluster);
  Model model = Classifier();
  ASSERT_OK(model.Compile(*strategy, ClassifierOptions()));
  FitOptions fit = Quiet(3);
  fit.batch_size = 8;
  fit.validation_split = 0.25;
  ASSERT_OK_AND_ASSIGN(const History history, model.Fit(Arrays(), fit));
  EXPECT_EQ(history.step_count, 3 * 6);
  EXPECT_EQ(history.example_count, 3 * 48);
  ASSERT_OK_AND_ASSIGN(
      const Logs logs,
      model.Evaluate(Arrays(), {.verbose = Verbosity::kSilent}));
  ASSERT_OK_AND_ASSIGN(
      const Logs wanted,
      model.Evaluate(Data().Batch(8), {.verbose = Verbosity::kSilent}));
  EXPECT_NEAR(logs.at("loss"), wanted.at("loss"), 1e-5);
  ASSERT_OK_AND_ASSIGN(const Tensor predictions,
                       model.Predict({Arrays()[0]}, {.batch_size = 7}));
  ASSERT_OK_AND_ASSIGN(const Tensor in_one, model.Predict(Data().Batch(64)));
  EXPECT_THAT(predictions.flat<float>(),
              Pointwise(FloatNear(1e-5), in_one.flat<float>()));
}

TEST_F(TrainingTest, RejectsArraysThatAreTooLargeToSend) {
  TestCluster cluster(1, 1);
  const auto strategy = Connect(cluster);
  Model model = Classifier();
  ASSERT_OK(model.Compile(*strategy, ClassifierOptions()));
  // More than 1 GiB of virtual memory, which is never accessed.
  const Tensor x(DType::kFloat32, {1 << 20, 257});
  const Tensor y(DType::kInt64, {1 << 20});
  EXPECT_THAT(
      model.Fit({x, y}, Quiet()),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("dataset of tensors in memory with 1086324736 "
                               "bytes"),
                     HasSubstr("read a file in each process instead"))));
}

// One worker processes its batches in order, so the result equals that of one
// process.
TEST_F(TrainingTest, OneWorkerTrainsLikeOneProcessWithTheSameOptions) {
  const auto train =
      [](Strategy& strategy,
         const Optimizer& optimizer) -> absl::StatusOr<std::vector<Tensor>> {
    Model model = Classifier();
    CompileOptions options = ClassifierOptions();
    options.optimizer = optimizer;
    options.steps_per_execution = 3;
    RETURN_IF_ERROR(model.Compile(strategy, options));
    FitOptions fit = Quiet(2);
    fit.class_weight = {{0, 0.3}, {2, 2.0}};
    RETURN_IF_ERROR(model.Fit(Data().Batch(8), fit).status());
    ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
    std::vector<Tensor> kept;
    for (const Tensor& weight : weights) kept.push_back(weight.Clone());
    return kept;
  };
  for (const Optimizer& optimizer :
       {ClassifierOptions().optimizer,
        Adam({.learning_rate = 0.05}, {.gradient_accumulation_steps = 2,
                                      .use_ema = true,
                                      .ema_momentum = 0.6,
                                      .ema_overwrite_frequency = 5})}) {
    ASSERT_OK_AND_ASSIGN(const auto alone,
                         DefaultStrategy::Create({.thread_count = 1}));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                         train(*alone, optimizer));
    TestCluster cluster(1, 2);
    const auto strategy = Connect(cluster);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         train(*strategy, optimizer));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i].flat<float>(),
                  Pointwise(FloatNear(1e-5), wanted[i].flat<float>()));
    }
  }
}

// Returns a model that tags words of padded sentences, and counts the words.
Model Sentences() {
  const LayerOutput ids = Input({4}, {.dtype = DType::kInt64, .name = "ids"});
  const LayerOutput x = Embedding(9, 3, {.mask_zero = true})(ids);
  const LayerOutput tags = Dense(3, {.name = "tags"})(x);
  return Model({ids}, {tags, Dense(1, {.name = "count"})(GRU(2)(x))});
}

Dataset SentenceData() {
  Tensor ids(DType::kInt64, {kExamples, 4});
  Tensor tags(DType::kInt64, {kExamples, 4});
  Tensor counts = Tensor::Zeros(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    const auto id = static_cast<int64_t>(FoldIn(5, i) % 18);
    ids.mutable_flat<int64_t>()[i] = id < 9 ? id : 0;
    tags.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(6, i) % 3);
    if (id > 0 && id < 9) counts.mutable_flat<float>()[i / 4] += 0.25f;
  }
  return Dataset::FromTensorSlices({ids, tags, counts}).Batch(8);
}

TEST_F(TrainingTest, OneWorkerMasksPaddingLikeOneProcess) {
  struct Trained {
    Logs logs;
    std::vector<Tensor> weights;
  };
  const auto train = [](Strategy& strategy) -> absl::StatusOr<Trained> {
    Model model = Sentences();
    RETURN_IF_ERROR(model.Compile(
        strategy,
        {.optimizer = Sgd({.learning_rate = 0.2}),
         .seed = 3,
         .losses = {SparseCategoricalCrossentropy({.from_logits = true}),
                    MeanSquaredError()},
         .output_metrics = {{SparseCategoricalAccuracy()}, {}}}));
    RETURN_IF_ERROR(model.Fit(SentenceData(), Quiet(2)).status());
    Trained trained;
    ASSIGN_OR_RETURN(
        trained.logs,
        model.Evaluate(SentenceData(), {.verbose = Verbosity::kSilent}));
    ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
    for (const Tensor& weight : weights) {
      trained.weights.push_back(weight.Clone());
    }
    return trained;
  };
  ASSERT_OK_AND_ASSIGN(const auto alone,
                       DefaultStrategy::Create({.thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
  TestCluster cluster(1, 2);
  const auto strategy = Connect(cluster);
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy));
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_THAT(got.weights[i].flat<float>(),
                Pointwise(FloatNear(1e-5), wanted.weights[i].flat<float>()));
  }
  for (const auto& [name, value] : wanted.logs) {
    EXPECT_NEAR(got.logs.at(name), value, 1e-5) << name;
  }
}

absl::StatusOr<Element> FirstBatch(const Dataset& data) {
  ASSIGN_OR_RETURN(const auto iterator, data.MakeIterator());
  Element batch;
  RETURN_IF_ERROR(iterator->Next(&batch).status());
  return batch;
}

TEST_F(TrainingTest, TrainOnBatchIsLikeThatOfOneProcess) {
  const auto train =
      [](Strategy& strategy) -> absl::StatusOr<std::vector<double>> {
    Model model = Classifier();
    RETURN_IF_ERROR(model.Compile(strategy, ClassifierOptions()));
    std::vector<double> losses;
    // The last batch is smaller.
    ASSIGN_OR_RETURN(const auto iterator, Data().Batch(15).MakeIterator());
    Element batch;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_batch, iterator->Next(&batch));
      if (!has_batch) break;
      ASSIGN_OR_RETURN(const Logs logs, model.TrainOnBatch(batch));
      losses.push_back(logs.at("loss"));
    }
    ASSIGN_OR_RETURN(batch, FirstBatch(Data().Batch(15)));
    ASSIGN_OR_RETURN(const Logs logs, model.TestOnBatch(batch));
    losses.push_back(logs.at("loss"));
    ASSIGN_OR_RETURN(const std::vector<Tensor> predictions,
                     model.PredictOnBatch({batch[0]}));
    for (const float p : predictions[0].flat<float>()) losses.push_back(p);
    return losses;
  };
  ASSERT_OK_AND_ASSIGN(const auto alone, DefaultStrategy::Create());
  ASSERT_OK_AND_ASSIGN(const std::vector<double> wanted, train(*alone));
  TestCluster cluster(2, 2);
  const auto strategy = Connect(cluster);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> got, train(*strategy));
  EXPECT_THAT(got, Pointwise(DoubleNear(1e-5), wanted));
}

TEST_F(TrainingTest, TrainOnBatchReportsARollback) {
  TestCluster cluster(1, 1);
  const auto strategy = Connect(cluster);
  Model model = Classifier();
  ASSERT_OK(model.Compile(*strategy, ClassifierOptions()));
  ASSERT_OK_AND_ASSIGN(const Element batch, FirstBatch(Data().Batch(15)));
  ASSERT_OK_AND_ASSIGN(const Logs first, model.TrainOnBatch(batch));
  ASSERT_OK(model.TrainOnBatch(batch).status());
  cluster.KillServer(0);
  cluster.StartServer(0);
  absl::StatusOr<Logs> logs = first;
  while (logs.ok()) logs = model.TrainOnBatch(batch);
  EXPECT_THAT(logs, StatusIs(absl::StatusCode::kAborted,
                             HasSubstr("continues from the initial values")));
  ASSERT_OK_AND_ASSIGN(const Logs again, model.TrainOnBatch(batch));
  EXPECT_NEAR(again.at("loss"), first.at("loss"), 1e-6);
}

}  // namespace
}  // namespace muster
