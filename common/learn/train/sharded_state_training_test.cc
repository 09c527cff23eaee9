// Tests that synchronous workers that divide the state of the optimizer train
// the same bits, and write the same checkpoints, as workers that each keep all
// of it.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/sharded_state.h"
#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 12;
// The last batch has five rows, so some replicas may have none.
constexpr int64_t kExamples = 4 * kBatch + 5;
constexpr int64_t kWords = 30;
constexpr int64_t kTimes = 3;
constexpr int64_t kClasses = 4;

Dataset Sentences() {
  Tensor x(DType::kInt64, {kExamples, kTimes});
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(1, i) % kWords);
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<int64_t>()[i] =
        x.flat<int64_t>()[i * kTimes] * kClasses / kWords;
  }
  return Dataset::FromTensorSlices({x, y}).Batch(kBatch);
}

// Has a table that takes rows, a constraint on whole columns, weights that are
// not trained, and assignments.
Model Classifier() {
  LayerPtr frozen = Dense(16, {.name = "frozen"});
  frozen->set_trainable(false);
  return Sequential(
      {Embedding(kWords, 5), Flatten(),
       Dense(24, {.activation = Activation::kRelu, .name = "first"}),
       BatchNormalization(), Dropout(0.2),
       Dense(16, {.activation = Activation::kTanh,
                  .kernel_constraint = MaxNorm({.max_value = 1}),
                  .name = "bounded"}),
       std::move(frozen), Dense(kClasses, {.name = "last"})});
}

struct Training {
  std::string name;
  CompileOptions options;
};

CompileOptions With(Optimizer optimizer,
                    std::vector<LayerOptimizer> layer_optimizers = {}) {
  return {.optimizer = std::move(optimizer),
          .layer_optimizers = std::move(layer_optimizers),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .seed = 5};
}

std::vector<Training> Trainings() {
  return {
      {"adam", With(Adam({.learning_rate = 0.01}))},
      {"global norm of accumulated gradients",
       With(
           AdamW({.learning_rate = 0.01}, {.weight_decay = 0.01,
                                           .global_clipnorm = 0.5,
                                           .gradient_accumulation_steps = 2}))},
      {"skipped steps", With(LossScaleOptimizer(Adam({.learning_rate = 0.01}),
                                                {.initial_scale = 1e38}))},
      {"moving averages", With(Adam({.learning_rate = 0.01},
                                    {.use_ema = true, .ema_momentum = 0.7}))},
      {"several optimizers",
       With(Lamb({.learning_rate = 0.01}),
            {{"first", Sgd({.learning_rate = 0.05, .momentum = 0.9})},
             {"last", RmsProp({.learning_rate = 0.01}, {.clipvalue = 0.2})}})},
  };
}

struct Cluster {
  int workers;
  int replicas;  // Per worker.
};

SynchronousStrategy::Options Options(ShardedState state, int micro_batches) {
  return {.communication = {.bytes_per_pack = 2000},
          .sharded_state = state,
          .deterministic_micro_batches = micro_batches};
}

std::vector<Tensor> WeightsOf(Model& model) {
  std::vector<Tensor> weights = model.GetWeights().value();
  for (Tensor& weight : weights) weight = weight.Clone();
  return weights;
}

absl::Status Fit(Model& model, int epochs) {
  return model
      .Fit(Sentences(), {.epochs = epochs, .verbose = Verbosity::kSilent})
      .status();
}

void ExpectSameBits(const std::vector<Tensor>& a,
                    const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].type(), b[i].type());
    EXPECT_EQ(std::memcmp(a[i].raw_data(), b[i].raw_data(), a[i].size_bytes()),
              0)
        << "weight " << i;
  }
}

// Returns the weights of each worker.
std::vector<std::vector<Tensor>> Train(const Cluster& cluster,
                                       ShardedState state, int micro_batches,
                                       const CompileOptions& options) {
  std::vector<std::vector<Tensor>> weights(cluster.workers);
  RunLocalWorkers(cluster.workers, cluster.replicas,
                  Options(state, micro_batches),
                  [&](int worker, SynchronousStrategy& strategy) {
                    Model model = Classifier();
                    ASSERT_OK(model.Compile(strategy, options));
                    ASSERT_OK(Fit(model, 3));
                    weights[worker] = WeightsOf(model);
                  });
  return weights;
}

class ShardedStateTrainingTest : public ::testing::TestWithParam<Cluster> {};

TEST_P(ShardedStateTrainingTest, TrainsTheBitsOfWorkersThatKeepAll) {
  for (const Training& training : Trainings()) {
    for (const int micro_batches : {0, 4}) {
      SCOPED_TRACE(absl::StrCat(training.name, ", ", micro_batches));
      const auto wanted = Train(GetParam(), ShardedState::kNone, micro_batches,
                                training.options);
      const auto sharded = Train(GetParam(), ShardedState::kOptimizer,
                                 micro_batches, training.options);
      for (int worker = 0; worker < GetParam().workers; ++worker) {
        ExpectSameBits(sharded[worker], wanted[0]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, ShardedStateTrainingTest,
                         ::testing::Values(Cluster{2, 1}, Cluster{3, 1},
                                           Cluster{2, 2}, Cluster{4, 1},
                                           Cluster{1, 3}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.workers, "Of",
                                               info.param.replicas);
                         });

std::string Path(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/", name);
}

// Trains, saves to Path(name), trains on, restores, and trains on again.
void TrainAndSave(ShardedState state, const std::string& name,
                  const CompileOptions& options) {
  RunLocalWorkers(4, 1, Options(state, 4),
                  [&](int, SynchronousStrategy& strategy) {
                    Model model = Classifier();
                    ASSERT_OK(model.Compile(strategy, options));
                    ASSERT_OK(Fit(model, 3));
                    ASSERT_OK(model.SaveCheckpoint(Path(name)));
                    ASSERT_OK(model.SaveWeights(Path(name + "-weights")));
                    ASSERT_OK(Fit(model, 1));
                    const std::vector<Tensor> after = WeightsOf(model);
                    ASSERT_OK(model.RestoreCheckpoint(Path(name)).status());
                    ASSERT_OK(Fit(model, 1));
                    ExpectSameBits(WeightsOf(model), after);
                  });
}

// Returns the weights after restoring and an epoch.
std::vector<Tensor> RestoreAndTrain(const Cluster& cluster, ShardedState state,
                                    const std::string& name,
                                    const CompileOptions& options) {
  std::vector<Tensor> weights;
  RunLocalWorkers(
      cluster.workers, cluster.replicas, Options(state, 4),
      [&](int worker, SynchronousStrategy& strategy) {
        Model model = Classifier();
        ASSERT_OK(model.Compile(strategy, options));
        ASSERT_OK(model.Build({DType::kInt64, {Shape::kUnknown, kTimes}}));
        ASSERT_OK(model.RestoreCheckpoint(Path(name)).status());
        ASSERT_OK(Fit(model, 1));
        ASSERT_OK(model.LoadWeights(Path(name + "-weights")));
        ASSERT_OK(Fit(model, 1));
        if (worker == 0) weights = WeightsOf(model);
      });
  return weights;
}

void ExpectSameTensors(const std::string& a, const std::string& b) {
  ASSERT_OK_AND_ASSIGN(const auto first,
                       TensorBundleReader::Open(Disk::Real(), Path(a)));
  ASSERT_OK_AND_ASSIGN(const auto second,
                       TensorBundleReader::Open(Disk::Real(), Path(b)));
  ASSERT_EQ(first->tensors().size(), second->tensors().size());
  for (size_t i = 0; i < first->tensors().size(); ++i) {
    const StoredTensor& stored = first->tensors()[i];
    EXPECT_EQ(stored.name, second->tensors()[i].name);
    if (stored.dtype == DType::kString) continue;
    ASSERT_OK_AND_ASSIGN(const Tensor one, first->Read(stored.name));
    ASSERT_OK_AND_ASSIGN(const Tensor other, second->Read(stored.name));
    ASSERT_EQ(one.type(), other.type()) << stored.name;
    EXPECT_EQ(std::memcmp(one.raw_data(), other.raw_data(), one.size_bytes()),
              0)
        << stored.name;
  }
}

TEST(ShardedCheckpointTest, IsThatOfWholeStateAndRestoresAnyNumberOfReplicas) {
  for (const Training& training : Trainings()) {
    SCOPED_TRACE(training.name);
    TrainAndSave(ShardedState::kOptimizer, "sharded", training.options);
    TrainAndSave(ShardedState::kNone, "whole", training.options);
    ExpectSameTensors("sharded", "whole");
    const std::vector<Tensor> wanted =
        RestoreAndTrain({1, 1}, ShardedState::kNone, "whole", training.options);
    for (const Cluster& cluster :
         {Cluster{4, 1}, Cluster{2, 1}, Cluster{1, 2}, Cluster{1, 1}}) {
      ExpectSameBits(RestoreAndTrain(cluster, ShardedState::kOptimizer,
                                     "sharded", training.options),
                     wanted);
    }
    ExpectSameBits(RestoreAndTrain({2, 1}, ShardedState::kNone, "sharded",
                                   training.options),
                   wanted);
  }
}

TEST(ShardedStateTest, TakesTheMemoryOfAShareOfTheSlots) {
  std::vector<int64_t> state_bytes(2);
  for (const ShardedState state :
       {ShardedState::kNone, ShardedState::kOptimizer}) {
    RunLocalWorkers(4, 1, Options(state, 0),
                    [&](int worker, SynchronousStrategy& strategy) {
                      Model model = Sequential(
                          {Flatten(), Dense(300), Dense(200), Dense(kClasses)});
                      ASSERT_OK(model.Compile(
                          strategy, With(Adam({.learning_rate = 0.01}))));
                      ASSERT_OK(Fit(model, 1));
                      const auto report = strategy.Report();
                      ASSERT_TRUE(report.replica_state_bytes.has_value());
                      if (worker == 0) {
                        state_bytes[state == ShardedState::kOptimizer] =
                            *report.replica_state_bytes;
                      }
                    });
  }
  const double ratio =
      static_cast<double>(state_bytes[1]) / static_cast<double>(state_bytes[0]);
  // The weights, and a quarter of two slots for each: 1.5 of 3.
  EXPECT_GT(ratio, 0.45);
  EXPECT_LT(ratio, 0.55);
}

TEST(ShardedStateTest, ASingleReplicaKeepsEverything) {
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       MultiWorkerMirroredStrategy::CreateAlone(
                           {.devices = {"cpu:0"},
                            .thread_count = 1,
                            .sharded_state = ShardedState::kOptimizer}));
  EXPECT_FALSE(strategy->variables().shards_optimizer_state());
  Model model = Classifier();
  ASSERT_OK(model.Compile(*strategy, With(Adam())));
  EXPECT_OK(Fit(model, 1));
}

TEST(ShardedStateTest, ReplicasThatShareVariablesHaveNothingToDivide) {
  RunLocalWorkers(1, 2, {}, [](int, SynchronousStrategy& strategy) {
    SynchronousStrategy::Options options = Options(ShardedState::kOptimizer, 0);
    options.shares_variables = true;
    EXPECT_THAT(SynchronousStrategy::CheckOptions(strategy.group(), options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("sharded_state is OPTIMIZER"),
                               HasSubstr("share one copy"))));
  });
}

}  // namespace
}  // namespace muster
