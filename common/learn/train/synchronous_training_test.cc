// Tests that training with strategies whose replicas work in sync equals
// training with one replica on the same batches.

#include <algorithm>
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
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_workers.h"
#include "common/net/collectives/communication_implementation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kFeatures = 6;
constexpr int64_t kClasses = 3;
constexpr int64_t kBatch = 16;
// Nine full batches and one of five. Some replicas may have none of the five.
constexpr int64_t kExamples = 9 * kBatch + 5;
constexpr int kEpochs = 10;

float Drawn(uint64_t stream, int64_t i) {
  return static_cast<float>(FoldIn(stream, i) % 2001) / 1000 - 1;
}

Dataset Examples(int64_t count = kExamples) {
  Tensor x(DType::kFloat32, {count, kFeatures});
  Tensor y(DType::kInt64, {count});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = Drawn(1, i);
  }
  for (int64_t i = 0; i < count; ++i) {
    y.mutable_flat<int64_t>()[i] = x.flat<float>()[i * kFeatures] < -0.3  ? 0
                                   : x.flat<float>()[i * kFeatures] < 0.3 ? 1
                                                                          : 2;
  }
  return Dataset::FromTensorSlices({x, y});
}

Dataset Batches() {
  return Examples().Shuffle(kExamples, {.seed = 4}).Batch(kBatch);
}

Model Classifier() {
  return Sequential({Dense(16, {.activation = Activation::kRelu}), Dropout(0.4),
                     Dense(8, {.activation = Activation::kTanh}),
                     Dense(kClasses)});
}

CompileOptions ClassifierOptions() {
  return {.optimizer = Adam({.learning_rate = 0.01}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {SparseCategoricalAccuracy()},
          .seed = 17};
}

struct Trained {
  std::vector<Tensor> weights;
  History history;
};

absl::StatusOr<Trained> Train(Strategy& strategy, Model model,
                              CompileOptions options, const Dataset& data,
                              int epochs = kEpochs,
                              std::vector<Callback*> callbacks = {}) {
  RETURN_IF_ERROR(model.Compile(strategy, std::move(options)));
  Trained trained;
  ASSIGN_OR_RETURN(trained.history,
                   model.Fit(data, {.epochs = epochs,
                                    .verbose = Verbosity::kSilent,
                                    .callbacks = std::move(callbacks)}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  return trained;
}

Trained TrainClassifier(Strategy& strategy) {
  return Train(strategy, Classifier(), ClassifierOptions(), Batches()).value();
}

Trained ByDefault() {
  const auto strategy = DefaultStrategy::Create({.thread_count = 1}).value();
  return TrainClassifier(*strategy);
}

std::vector<std::string> Cpus(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat("cpu:", i));
  return names;
}

std::unique_ptr<MirroredStrategy> Mirrored(
    int replica_count, MirroredStrategyOptions options = {}) {
  options.devices = Cpus(replica_count);
  options.thread_count = 1;
  return MirroredStrategy::Create(options).value();
}

void ExpectNear(const Trained& got, const Trained& wanted, double tolerance) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    ASSERT_EQ(got.weights[i].type(), wanted.weights[i].type());
    double worst = 0;
    for (int64_t j = 0; j < got.weights[i].element_count(); ++j) {
      const double difference = got.weights[i].ElementAsDouble(j) -
                                wanted.weights[i].ElementAsDouble(j);
      // NaN is the largest difference.
      worst = std::isfinite(difference) ? std::max(worst, std::abs(difference))
                                        : HUGE_VAL;
    }
    EXPECT_LE(worst, tolerance) << "weight " << i;
  }
  ASSERT_EQ(got.history.history.size(), wanted.history.history.size());
  for (const auto& [name, values] : wanted.history.history) {
    const std::vector<double>& others = got.history.history.at(name);
    ASSERT_EQ(others.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(others[i], values[i], tolerance) << name << " " << i;
    }
  }
  EXPECT_EQ(got.history.step_count, wanted.history.step_count);
  EXPECT_EQ(got.history.example_count, wanted.history.example_count);
}

void ExpectSameBits(const Trained& got, const Trained& wanted) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual(got.weights[i], wanted.weights[i]))
        << "weight " << i;
  }
  EXPECT_EQ(got.history.history, wanted.history.history);
}

class ReplicaCountTest : public ::testing::TestWithParam<int> {};

TEST_P(ReplicaCountTest, TrainsLikeOneReplica) {
  const Trained wanted = ByDefault();
  ASSERT_EQ(wanted.history.step_count, 100);
  ExpectNear(TrainClassifier(*Mirrored(GetParam())), wanted, 2e-5);
}

TEST_P(ReplicaCountTest, SharedVariablesTrainLikeOneReplica) {
  const auto strategy =
      CentralStorageStrategy::Create(
          {.compute_devices = Cpus(GetParam()), .thread_count = 1})
          .value();
  ExpectNear(TrainClassifier(*strategy), ByDefault(), 2e-5);
}

TEST_P(ReplicaCountTest, DeterministicModeGivesTheSameBits) {
  for (const int micro_batches : {4, 7}) {
    const auto one = OneDeviceStrategy::Create(
                         {.deterministic_micro_batches = micro_batches})
                         .value();
    const Trained wanted = TrainClassifier(*one);
    const auto strategy =
        Mirrored(GetParam(), {.deterministic_micro_batches = micro_batches});
    const Trained got = TrainClassifier(*strategy);
    ExpectSameBits(got, wanted);
    ExpectNear(got, ByDefault(), 2e-5);
  }
}

TEST_P(ReplicaCountTest, ManyPacksTrainLikeOne) {
  const Trained one_pack = TrainClassifier(*Mirrored(GetParam()));
  const Trained many_packs = TrainClassifier(
      *Mirrored(GetParam(), {.communication = {.bytes_per_pack = 100}}));
  ExpectNear(many_packs, one_pack, 2e-5);
}

// {rows of words, class}
Dataset Sentences() {
  constexpr int64_t kCount = 70;
  constexpr int64_t kWords = 4;
  Tensor x(DType::kInt64, {kCount, kWords});
  Tensor y(DType::kInt64, {kCount});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(5, i) % 30);
  }
  for (int64_t i = 0; i < kCount; ++i) {
    y.mutable_flat<int64_t>()[i] = x.flat<int64_t>()[i * kWords] % kClasses;
  }
  return Dataset::FromTensorSlices({x, y}).Batch(kBatch);
}

absl::StatusOr<Trained> TrainSentences(Strategy& strategy) {
  return Train(strategy,
               Sequential({Embedding(30, 5), Flatten(), Dense(kClasses)}),
               {.optimizer = Adagrad({.learning_rate = 0.1}),
                .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                .seed = 2},
               Sentences());
}

TEST_P(ReplicaCountTest, EmbeddingsTrainLikeOneReplica) {
  const auto local = DefaultStrategy::Create({.thread_count = 1}).value();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, TrainSentences(*local));
  ASSERT_OK_AND_ASSIGN(const Trained got,
                       TrainSentences(*Mirrored(GetParam())));
  ExpectNear(got, wanted, 1e-5);
}

TEST_P(ReplicaCountTest, EmbeddingsHaveTheSameBitsInDeterministicMode) {
  const auto one =
      OneDeviceStrategy::Create({.deterministic_micro_batches = 5}).value();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, TrainSentences(*one));
  ASSERT_OK_AND_ASSIGN(const Trained got,
                       TrainSentences(*Mirrored(
                           GetParam(), {.deterministic_micro_batches = 5})));
  ExpectSameBits(got, wanted);
}

TEST_P(ReplicaCountTest, EvaluatesAndPredictsEveryExampleOnce) {
  const auto local = DefaultStrategy::Create({.thread_count = 1}).value();
  const auto mirrored = Mirrored(GetParam());
  const auto run = [](Strategy& strategy, Logs* logs, Tensor* predictions) {
    Model model = Classifier();
    ASSERT_OK(model.Compile(strategy, ClassifierOptions()));
    ASSERT_OK_AND_ASSIGN(*logs,
                         model.Evaluate(Examples().Batch(kBatch),
                                        {.verbose = Verbosity::kSilent}));
    ASSERT_OK_AND_ASSIGN(*predictions, model.Predict(Examples().Batch(kBatch)));
  };
  Logs wanted, got;
  Tensor wanted_predictions, predictions;
  run(*local, &wanted, &wanted_predictions);
  run(*mirrored, &got, &predictions);
  EXPECT_NEAR(got.at("loss"), wanted.at("loss"), 1e-6);
  EXPECT_EQ(got.at("sparse_categorical_accuracy"),
            wanted.at("sparse_categorical_accuracy"));
  ASSERT_EQ(predictions.type(), wanted_predictions.type());
  for (int64_t i = 0; i < predictions.element_count(); ++i) {
    EXPECT_NEAR(predictions.flat<float>()[i],
                wanted_predictions.flat<float>()[i], 1e-6);
  }
}

// The last batch does not fill the micro-batches.
TEST_P(ReplicaCountTest, EvaluationsHaveTheSameBitsInDeterministicMode) {
  const auto evaluate = [](Strategy& strategy) -> absl::StatusOr<Logs> {
    Model model = Classifier();
    RETURN_IF_ERROR(model.Compile(strategy, ClassifierOptions()));
    return model.Evaluate(Examples().Batch(13),
                          {.verbose = Verbosity::kSilent});
  };
  const auto one =
      OneDeviceStrategy::Create({.deterministic_micro_batches = 5}).value();
  ASSERT_OK_AND_ASSIGN(const Logs wanted, evaluate(*one));
  ASSERT_OK_AND_ASSIGN(
      const Logs got,
      evaluate(*Mirrored(GetParam(), {.deterministic_micro_batches = 5})));
  EXPECT_EQ(got, wanted);
}

// Means ignore some labels, and replicas have different numbers of those.
TEST_P(ReplicaCountTest, IgnoredLabelsLeaveTheMeanAMean) {
  const auto train = [](Strategy& strategy) {
    return Train(strategy, Sequential({Dense(kClasses)}),
                 {.optimizer = Sgd({.learning_rate = 0.1}),
                  .loss = SparseCategoricalCrossentropy(
                      {.from_logits = true, .ignore_class = 0}),
                  .seed = 3},
                 Examples().Batch(kBatch), 2)
        .value();
  };
  const auto local = DefaultStrategy::Create({.thread_count = 1}).value();
  ExpectNear(train(*Mirrored(GetParam())), train(*local), 1e-5);
}

TEST_P(ReplicaCountTest, SumsAreSums) {
  const auto train = [](Strategy& strategy) {
    return Train(strategy, Sequential({Dense(kClasses)}),
                 {.optimizer = Sgd({.learning_rate = 0.01}),
                  .loss = SparseCategoricalCrossentropy(
                      {.from_logits = true, .reduction = Reduction::kSum}),
                  .seed = 3},
                 Examples().Batch(kBatch), 2)
        .value();
  };
  const auto local = DefaultStrategy::Create({.thread_count = 1}).value();
  ExpectNear(train(*Mirrored(GetParam())), train(*local), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Replicas, ReplicaCountTest,
                         ::testing::Values(1, 2, 3, 4));

TEST(OneDeviceTest, GivesTheBitsOfTheDefaultStrategy) {
  const auto strategy = OneDeviceStrategy::Create({.thread_count = 1}).value();
  EXPECT_EQ(strategy->name(), "one_device");
  ExpectSameBits(TrainClassifier(*strategy), ByDefault());
}

TEST(MirroredTest, RefusesInvalidDevices) {
  EXPECT_THAT(
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:0"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("named twice")));
  EXPECT_THAT(MirroredStrategy::Create({.devices = {"tpu:0"}}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("tpu:0")));
  EXPECT_THAT(MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1", "cpu:2"},
                                        .deterministic_micro_batches = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("deterministic_micro_batches is 2")));
  EXPECT_THAT(
      MirroredStrategy::Create({.communication = {.bytes_per_pack = -1}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("bytes_per_pack is -1")));
  EXPECT_THAT(MirroredStrategy::Create(
                  {.communication = {.implementation =
                                         CommunicationImplementation::kNccl}}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("NCCL")));
}

TEST(MirroredTest, AllReplicasReturnAnErrorOfOneAndCanContinue) {
  const auto strategy = Mirrored(3);
  Tensor x = Tensor::Zeros(DType::kInt64, {12, 1});
  x.mutable_flat<int64_t>()[7] = 1000;  // No such row; second replica.
  const Tensor y = Tensor::Zeros(DType::kInt64, {12});
  const auto train = [&](const Tensor& rows) {
    return Train(*strategy,
                 Sequential({Embedding(30, 5), Flatten(), Dense(kClasses)}),
                 {.optimizer = Sgd(),
                  .loss = SparseCategoricalCrossentropy({.from_logits = true})},
                 Dataset::FromTensorSlices({rows, y}).Batch(12), 1);
  };
  EXPECT_THAT(train(x), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("index 1000")));
  x.mutable_flat<int64_t>()[7] = 1;
  EXPECT_OK(train(x).status());
}

// The other micro-batches, of both replicas, wait for the one with the error.
TEST(MirroredTest, AllReplicasReturnAnErrorOfAMicroBatchAndCanContinue) {
  const auto strategy = Mirrored(2, {.deterministic_micro_batches = 4});
  Tensor x = Tensor::Zeros(DType::kInt64, {12, 1});
  const Tensor y = Tensor::Zeros(DType::kInt64, {12});
  const auto train = [&] {
    return Train(*strategy,
                 Sequential({Embedding(30, 5), Flatten(),
                             BatchNormalization({.synchronized = true}),
                             Dense(kClasses)}),
                 {.optimizer = Sgd(),
                  .loss = SparseCategoricalCrossentropy({.from_logits = true})},
                 Dataset::FromTensorSlices({x, y}).Batch(12), 1);
  };
  for (const int row : {0, 4, 11}) {
    x.mutable_flat<int64_t>()[row] = 1000;  // No such row of the table.
    EXPECT_THAT(train(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("index 1000")));
    x.mutable_flat<int64_t>()[row] = 1;
    EXPECT_OK(train().status());
  }
}

struct Workers {
  int count;
  int replicas;
  bool overlaps;
};

class WorkersTest : public ::testing::TestWithParam<Workers> {
 protected:
  SynchronousStrategy::Options Options() const {
    return {.communication = {.bytes_per_pack = 64},
            .overlaps_communication = GetParam().overlaps};
  }
  void Run(const std::function<void(int, SynchronousStrategy&)>& work,
           SynchronousStrategy::Options options) {
    RunLocalWorkers(GetParam().count, GetParam().replicas, options, work);
  }
};

TEST_P(WorkersTest, TrainLikeOneReplicaWhateverTheirSeeds) {
  const Trained wanted = ByDefault();
  Run(
      [&](int worker, SynchronousStrategy& strategy) {
        CompileOptions options = ClassifierOptions();
        Model model = Classifier();
        // Rank 0 broadcasts its weights.
        ASSERT_OK(model.Compile(strategy, options));
        const TensorType input{DType::kFloat32, {Shape::kUnknown, kFeatures}};
        if (worker != 0) {
          options.seed = 99;
          Model other = Classifier();
          ASSERT_OK(other.Compile(strategy, options));
          ASSERT_OK(other.Build(input));
        }
        ASSERT_OK_AND_ASSIGN(
            const Trained got,
            Train(strategy, std::move(model), ClassifierOptions(), Batches()));
        ExpectNear(got, wanted, 2e-5);
      },
      Options());
}

TEST_P(WorkersTest, DeterministicModeGivesTheBitsOfOneReplica) {
  const auto one =
      OneDeviceStrategy::Create({.deterministic_micro_batches = 6}).value();
  const Trained wanted = TrainClassifier(*one);
  SynchronousStrategy::Options options = Options();
  options.deterministic_micro_batches = 6;
  Run(
      [&](int, SynchronousStrategy& strategy) {
        ExpectSameBits(TrainClassifier(strategy), wanted);
      },
      options);
}

TEST_P(WorkersTest, EvaluateAndPredictEveryExampleOnce) {
  const auto local = DefaultStrategy::Create({.thread_count = 1}).value();
  Model model = Classifier();
  ASSERT_OK(model.Compile(*local, ClassifierOptions()));
  const Dataset data = Examples().Batch(kBatch);
  ASSERT_OK_AND_ASSIGN(const Logs wanted,
                       model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  ASSERT_OK_AND_ASSIGN(const Tensor wanted_predictions, model.Predict(data));
  Run(
      [&](int, SynchronousStrategy& strategy) {
        Model model = Classifier();
        ASSERT_OK(model.Compile(strategy, ClassifierOptions()));
        ASSERT_OK_AND_ASSIGN(
            const Logs logs,
            model.Evaluate(data, {.verbose = Verbosity::kSilent}));
        EXPECT_NEAR(logs.at("loss"), wanted.at("loss"), 1e-6);
        EXPECT_EQ(logs.at("sparse_categorical_accuracy"),
                  wanted.at("sparse_categorical_accuracy"));
        ASSERT_OK_AND_ASSIGN(const Tensor predictions, model.Predict(data));
        ASSERT_EQ(predictions.type(), wanted_predictions.type());
        for (int64_t i = 0; i < predictions.element_count(); ++i) {
          EXPECT_NEAR(predictions.flat<float>()[i],
                      wanted_predictions.flat<float>()[i], 1e-6);
        }
      },
      Options());
}

TEST_P(WorkersTest, TrainUntilNoWorkerHasData) {
  SynchronousStrategy::Options options = Options();
  options.input.auto_shard_policy = AutoShardPolicy::kOff;
  std::vector<Trained> trained(GetParam().count);
  Run(
      [&](int worker, SynchronousStrategy& strategy) {
        // Two batches on the first worker, three on the second, ...
        const Dataset data = Examples(kBatch * (2 + worker) - 3).Batch(kBatch);
        ASSERT_OK_AND_ASSIGN(trained[worker],
                             Train(strategy, Classifier(), ClassifierOptions(),
                                   data, /*epochs=*/3));
      },
      options);
  const Trained& first = trained[0];
  EXPECT_GT(first.history.step_count, 0);
  for (const Tensor& weight : first.weights) {
    for (const float value : weight.flat<float>()) {
      EXPECT_TRUE(std::isfinite(value));
    }
  }
  for (const Trained& other : trained) {
    ExpectSameBits(other, first);
    EXPECT_EQ(other.history.step_count, first.history.step_count);
    EXPECT_EQ(other.history.example_count, first.history.example_count);
  }
}

class StopsAtStep final : public Callback {
 public:
  explicit StopsAtStep(int64_t step) : step_(step) {}
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs&) override {
    ++seen_;
    if (step == step_) model.StopTraining();
    return absl::OkStatus();
  }
  int64_t seen() const { return seen_; }

 private:
  const int64_t step_;
  int64_t seen_ = 0;
};

TEST_P(WorkersTest, OneThatStopsStopsAllAfterTheSameStep) {
  // 9 is also the last step of the data.
  for (const int64_t last_step : {2, 9}) {
    std::vector<Trained> trained(GetParam().count);
    Run(
        [&](int worker, SynchronousStrategy& strategy) {
          StopsAtStep stops(worker == 1 ? last_step : -1);
          ASSERT_OK_AND_ASSIGN(
              trained[worker],
              Train(strategy, Classifier(), ClassifierOptions(), Batches(),
                    kEpochs, {&stops}));
          EXPECT_EQ(stops.seen(), last_step + 1);
          EXPECT_THAT(trained[worker].history.epoch, ElementsAre(0));
        },
        Options());
    for (const Trained& other : trained) ExpectSameBits(other, trained[0]);
    // The step in which others receive the request changes no weights.
    const auto local = DefaultStrategy::Create({.thread_count = 1}).value();
    StopsAtStep stops(last_step);
    ASSERT_OK_AND_ASSIGN(const Trained wanted,
                         Train(*local, Classifier(), ClassifierOptions(),
                               Batches(), kEpochs, {&stops}));
    ExpectNear(trained[0], wanted, 2e-5);
  }
}

class StopsAfterEpoch final : public Callback {
 public:
  absl::Status OnEpochEnd(Model& model, int epoch, Logs&) override {
    if (epoch == 1) model.StopTraining();
    return absl::OkStatus();
  }
};

TEST_P(WorkersTest, OneThatStopsBetweenEpochsStopsAll) {
  Run(
      [&](int worker, SynchronousStrategy& strategy) {
        StopsAfterEpoch stops;
        std::vector<Callback*> callbacks;
        if (worker == 1) callbacks.push_back(&stops);
        ASSERT_OK_AND_ASSIGN(const Trained trained,
                             Train(strategy, Classifier(), ClassifierOptions(),
                                   Batches(), kEpochs, callbacks));
        EXPECT_THAT(trained.history.epoch, ElementsAre(0, 1));
      },
      Options());
}

class FailsAtStep final : public Callback {
 public:
  absl::Status OnTrainBatchEnd(Model&, int64_t step, const Logs&) override {
    return step == 3 ? absl::DataLossError("the disk of a worker is full")
                     : absl::OkStatus();
  }
};

TEST_P(WorkersTest, AnErrorOnOneIsTheErrorOfAll) {
  Run(
      [&](int worker, SynchronousStrategy& strategy) {
        FailsAtStep fails;
        std::vector<Callback*> callbacks;
        if (worker == 1) callbacks.push_back(&fails);
        const absl::Status status =
            Train(strategy, Classifier(), ClassifierOptions(), Batches(),
                  kEpochs, callbacks)
                .status();
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr("the disk of a worker"));
      },
      Options());
}

INSTANTIATE_TEST_SUITE_P(Groups, WorkersTest,
                         ::testing::Values(Workers{2, 1, false},
                                           Workers{2, 1, true},
                                           Workers{2, 2, true},
                                           Workers{3, 1, false}));

}  // namespace
}  // namespace muster
