// Tests that padding of an output is ignored in the same way by any number of
// replicas that train in sync.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::DoubleNear;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kBatch = 8;
constexpr int64_t kExamples = 3 * kBatch + 1;  // The last batch has 1, so some
                                               // replicas have none.
constexpr int64_t kTimes = 4;
constexpr int64_t kWords = 9;
constexpr int64_t kTags = 3;

int64_t Drawn(uint64_t stream, int64_t i, int64_t limit) {
  return static_cast<int64_t>(FoldIn(stream, i) % limit);
}

// Later examples of a batch are longer. The first ones consist of padding only,
// and so does the whole second batch.
Tensor Ids() {
  Tensor ids(DType::kInt64, {kExamples, kTimes});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    const int64_t example = i / kTimes;
    const bool is_word = example / kBatch != 1 &&
                         i % kTimes < example % kBatch - 2 + example / 24 * 4;
    ids.mutable_flat<int64_t>()[i] = is_word ? 1 + Drawn(1, i, kWords - 1) : 0;
  }
  return ids;
}

Tensor Tags() {
  Tensor tags(DType::kInt64, {kExamples, kTimes});
  for (int64_t i = 0; i < tags.element_count(); ++i) {
    tags.mutable_flat<int64_t>()[i] = Drawn(2, i, kTags);
  }
  return tags;
}

Tensor Numbers(const Shape& shape) {
  Tensor numbers(DType::kFloat32, shape);
  for (int64_t i = 0; i < numbers.element_count(); ++i) {
    numbers.mutable_flat<float>()[i] =
        static_cast<float>(Drawn(3, i, 2001)) / 1000;
  }
  return numbers;
}

LayerPtr Words() { return Embedding(kWords, 3, {.mask_zero = true}); }

LayerPtr Recurrent() {
  return GRU(3, {.sequence = {.return_sequences = true}});
}

Model Tagger() {
  return Sequential(
      {Words(), Recurrent(), Dense(kTags, {.kernel_regularizer = L2(0.1)})});
}

CompileOptions TaggerOptions(Reduction reduction) {
  return {.optimizer = Sgd({.learning_rate = 0.2}),
          .loss = SparseCategoricalCrossentropy(
              {.from_logits = true, .reduction = reduction}),
          .metrics = {SparseCategoricalAccuracy()},
          .weighted_metrics = {SparseCategoricalCrossentropy(
              {.from_logits = true})},
          .seed = 4};
}

Dataset TaggerData() {
  return Dataset::FromTensorSlices(
             {Ids(), Tags(), Numbers({kExamples, kTimes})})
      .Batch(kBatch);
}

// Two outputs: a tag for each word and a number for each sentence.
Model TwoOutputs() {
  const LayerOutput ids =
      Input({kTimes}, {.dtype = DType::kInt64, .name = "ids"});
  const LayerOutput x = Recurrent()(Words()(ids));
  const LayerOutput tags =
      Dense(kTags, {.kernel_regularizer = L2(0.1), .name = "tags"})(x);
  const LayerOutput length = Dense(1, {.name = "length"})(GRU(2)(x));
  return Model({ids}, {tags, length});
}

CompileOptions TwoOutputsOptions() {
  return {
      .optimizer = Sgd({.learning_rate = 0.2}),
      .seed = 5,
      .losses = {SparseCategoricalCrossentropy({.from_logits = true}),
                 MeanSquaredError()},
      .output_metrics = {{SparseCategoricalAccuracy()}, {MeanAbsoluteError()}},
      .loss_weights = {2.0, 0.5}};
}

Dataset TwoOutputsData() {
  return Dataset::FromTensorSlices({Ids(), Tags(), Numbers({kExamples, 1})})
      .Batch(kBatch);
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Strategy>()> make;
};

std::unique_ptr<Strategy> Mirrored(int count, int micro_batches) {
  MirroredStrategyOptions options{.thread_count = 1,
                                  .deterministic_micro_batches = micro_batches};
  for (int i = 0; i < count; ++i) {
    options.devices.push_back(absl::StrCat("cpu:", i));
  }
  return MirroredStrategy::Create(options).value();
}

std::vector<Case> Strategies() {
  return {
      {"OneReplica", [] { return Mirrored(1, 0); }},
      {"TwoReplicas", [] { return Mirrored(2, 0); }},
      {"ThreeReplicas", [] { return Mirrored(3, 0); }},
      {"Deterministic", [] { return Mirrored(2, 4); }},
      {"CentralStorage",
       [] {
         return CentralStorageStrategy::Create(
                    {.compute_devices = {"cpu:0", "cpu:1"}, .thread_count = 1})
             .value();
       }},
  };
}

std::unique_ptr<Strategy> Alone() {
  return DefaultStrategy::Create({.thread_count = 1}).value();
}

struct Trained {
  std::vector<std::vector<float>> weights;
  History history;
  Logs evaluation;
};

absl::StatusOr<Trained> Train(Strategy& strategy, Model model,
                              CompileOptions options, const Dataset& data) {
  RETURN_IF_ERROR(model.Compile(strategy, std::move(options)));
  Trained trained;
  ASSIGN_OR_RETURN(
      trained.history,
      model.Fit(data, {.epochs = 2, .verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(trained.evaluation,
                   model.Evaluate(data, {.verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.emplace_back(weight.flat<float>().begin(),
                                 weight.flat<float>().end());
  }
  return trained;
}

void ExpectSame(const Trained& got, const Trained& wanted) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_THAT(got.weights[i], Pointwise(FloatNear(1e-5), wanted.weights[i]));
  }
  ASSERT_EQ(got.history.history.size(), wanted.history.history.size());
  for (const auto& [name, values] : wanted.history.history) {
    EXPECT_THAT(got.history.history.at(name),
                Pointwise(DoubleNear(1e-5), values))
        << name;
  }
  ASSERT_EQ(got.evaluation.size(), wanted.evaluation.size());
  for (const auto& [name, value] : wanted.evaluation) {
    EXPECT_NEAR(got.evaluation.at(name), value, 1e-5) << name;
  }
}

class MaskedTrainingTest : public ::testing::TestWithParam<Case> {
 protected:
  const std::unique_ptr<Strategy> strategy_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Strategies, MaskedTrainingTest,
                         ::testing::ValuesIn(Strategies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(MaskedTrainingTest, MeansAreThoseOfOneReplica) {
  const auto train = [](Strategy& strategy) {
    return Train(strategy, Tagger(),
                 TaggerOptions(Reduction::kSumOverBatchSize), TaggerData());
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy_));
  ExpectSame(got, wanted);
}

TEST_P(MaskedTrainingTest, SumsAreThoseOfOneReplica) {
  const auto train = [](Strategy& strategy) {
    CompileOptions options = TaggerOptions(Reduction::kSum);
    options.optimizer = Sgd({.learning_rate = 0.02});
    return Train(strategy, Tagger(), options, TaggerData());
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy_));
  ExpectSame(got, wanted);
}

TEST_P(MaskedTrainingTest, EachOfTwoOutputsHasTheMeanOfOneReplica) {
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      Train(*alone, TwoOutputs(), TwoOutputsOptions(), TwoOutputsData()));
  ASSERT_OK_AND_ASSIGN(
      const Trained got,
      Train(*strategy_, TwoOutputs(), TwoOutputsOptions(), TwoOutputsData()));
  ExpectSame(got, wanted);
}

TEST_P(MaskedTrainingTest, AnOutputAloneNeedsNothingOfTheOthers) {
  const auto train = [](Strategy& strategy) {
    CompileOptions options = TwoOutputsOptions();
    options.losses[1] = Loss();
    return Train(strategy, TwoOutputs(), options, TwoOutputsData());
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy_));
  ExpectSame(got, wanted);
}

// Ignored labels have the same effect as padding.
TEST_P(MaskedTrainingTest, IgnoredLabelsOfTwoOutputsAreThoseOfOneReplica) {
  const auto train = [](Strategy& strategy) {
    const LayerOutput ids =
        Input({kTimes}, {.dtype = DType::kInt64, .name = "ids"});
    const LayerOutput x = Embedding(kWords, 3)(ids);
    const LayerOutput tags = Dense(kTags, {.name = "tags"})(x);
    const LayerOutput length = Dense(1, {.name = "length"})(GRU(2)(x));
    CompileOptions options = TwoOutputsOptions();
    options.losses[0] =
        SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = 1});
    return Train(strategy, Model({ids}, {tags, length}), options,
                 TwoOutputsData());
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone));
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy_));
  ExpectSame(got, wanted);
}

// The words are frozen, so no gradient passes through the statistics.
TEST_P(MaskedTrainingTest, StatisticsOfAllReplicasLeavePaddingOut) {
  const auto train = [](Strategy& strategy, bool synchronized) {
    const LayerPtr words = Words();
    words->set_trainable(false);
    return Train(strategy,
                 Sequential({words,
                             BatchNormalization({.momentum = 0.5,
                                                 .synchronized = synchronized}),
                             Dense(kTags)}),
                 TaggerOptions(Reduction::kSumOverBatchSize), TaggerData());
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone, false));
  ASSERT_OK_AND_ASSIGN(const Trained got, train(*strategy_, true));
  ExpectSame(got, wanted);
}

TEST_P(MaskedTrainingTest, ABatchByHandIsThatOfOneReplica) {
  const Element batch = {Ids().SliceRows(0, kBatch),
                         Tags().SliceRows(0, kBatch),
                         Numbers({kExamples, 1}).SliceRows(0, kBatch)};
  const auto train = [&](Strategy& strategy) -> absl::StatusOr<Logs> {
    Model model = TwoOutputs();
    RETURN_IF_ERROR(model.Compile(strategy, TwoOutputsOptions()));
    RETURN_IF_ERROR(model.TrainOnBatch(batch).status());
    return model.TestOnBatch(batch);
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Logs wanted, train(*alone));
  ASSERT_OK_AND_ASSIGN(const Logs got, train(*strategy_));
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    EXPECT_NEAR(got.at(name), value, 1e-5) << name;
  }
}

// The custom step of the example in masks.h.
std::vector<StepMetric> TagByHand(const StepTrace& step) {
  Masks masks;
  CallContext context = step.context;
  context.masks = &masks;
  const Value tags = (*step.layer)(step.element[0], context);
  const Loss loss = SparseCategoricalCrossentropy({.from_logits = true});
  const Loss::Counted mean =
      loss.WithCount(step.element[1], tags, step.element[2], masks.Find(tags));
  SetLossDenominator(mean.example_count);
  step.Minimize(mean.loss);
  return {{"sparse_categorical_accuracy",
           SparseCategoricalAccuracy().StatisticsOf(
               step.element[1], tags, Value(), masks.Find(tags))}};
}

TEST_P(MaskedTrainingTest, ACustomStepPassesMasksToTheModel) {
  const auto tagger = [] {
    return Sequential({Words(), Recurrent(), Dense(kTags)});
  };
  CompileOptions options = TaggerOptions(Reduction::kSumOverBatchSize);
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*alone, tagger(), options, TaggerData()));
  options.train_step = TagByHand;
  ASSERT_OK_AND_ASSIGN(const Trained got,
                       Train(*strategy_, tagger(), options, TaggerData()));
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_THAT(got.weights[i], Pointwise(FloatNear(1e-5), wanted.weights[i]));
  }
  const std::string accuracy = "sparse_categorical_accuracy";
  EXPECT_THAT(got.history.history.at(accuracy),
              Pointwise(DoubleNear(1e-5), wanted.history.history.at(accuracy)));
}

// The values of padding must not matter.
TEST_P(MaskedTrainingTest, LabelsAndWeightsOfPaddingAreNotLookedAt) {
  Tensor tags = Tags();
  Tensor weights = Numbers({kExamples, kTimes});
  const Tensor ids = Ids();
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    if (ids.flat<int64_t>()[i] != 0) continue;
    tags.mutable_flat<int64_t>()[i] = 0;
    weights.mutable_flat<float>()[i] = 1000;
  }
  const auto train = [](Strategy& strategy, const Dataset& data) {
    return Train(strategy, Tagger(),
                 TaggerOptions(Reduction::kSumOverBatchSize), data);
  };
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*alone, TaggerData()));
  ASSERT_OK_AND_ASSIGN(
      const Trained got,
      train(*strategy_,
            Dataset::FromTensorSlices({ids, tags, weights}).Batch(kBatch)));
  ExpectSame(got, wanted);
}

// A model whose step has all kinds of collectives: the statistics of a batch,
// the number of unmasked positions of two outputs, and penalties with summed
// losses.
Model NormalizedTwoOutputs() {
  const LayerOutput ids =
      Input({kTimes}, {.dtype = DType::kInt64, .name = "ids"});
  const LayerOutput x = BatchNormalization(
      {.momentum = 0.5, .synchronized = true})(Recurrent()(Words()(ids)));
  const LayerOutput tags =
      Dense(kTags, {.kernel_regularizer = L2(0.1), .name = "tags"})(x);
  const LayerOutput length =
      Dense(1, {.kernel_regularizer = L1(0.01), .name = "length"})(GRU(2)(x));
  return Model({ids}, {tags, length});
}

absl::StatusOr<Trained> TrainNormalized(Strategy& strategy,
                                        Reduction reduction) {
  CompileOptions options = TwoOutputsOptions();
  options.optimizer = Sgd({.learning_rate = 0.02});
  options.losses = {SparseCategoricalCrossentropy(
                        {.from_logits = true, .reduction = reduction}),
                    MeanSquaredError({.reduction = reduction})};
  return Train(strategy, NormalizedTwoOutputs(), options, TwoOutputsData());
}

TEST(DeterministicMaskedTrainingTest, EveryCountOfReplicasGivesTheSameBits) {
  const auto sums = [](Strategy& strategy) {
    CompileOptions options = TaggerOptions(Reduction::kSum);
    options.optimizer = Sgd({.learning_rate = 0.02});
    return Train(strategy, Tagger(), options, TaggerData());
  };
  const auto two_outputs = [](Strategy& strategy) {
    return Train(strategy, TwoOutputs(), TwoOutputsOptions(), TwoOutputsData());
  };
  const auto means_of_all = [](Strategy& strategy) {
    return TrainNormalized(strategy, Reduction::kSumOverBatchSize);
  };
  const auto sums_of_all = [](Strategy& strategy) {
    return TrainNormalized(strategy, Reduction::kSum);
  };
  for (const std::function<absl::StatusOr<Trained>(Strategy&)>& train :
       {std::function<absl::StatusOr<Trained>(Strategy&)>(sums),
        {two_outputs},
        {means_of_all},
        {sums_of_all}}) {
    const auto one = Mirrored(1, 4);
    ASSERT_OK_AND_ASSIGN(const Trained wanted, train(*one));
    for (const int replica_count : {2, 3, 4}) {
      const auto several = Mirrored(replica_count, 4);
      ASSERT_OK_AND_ASSIGN(const Trained got, train(*several));
      EXPECT_EQ(got.weights, wanted.weights) << replica_count << " replicas";
    }
  }
}

// Packs of gradients are all-reduced on other threads, concurrently with the
// step's own collective.
TEST(MaskedWorkersTest, TwoOutputsTrainAsInOneProcess) {
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      Train(*alone, TwoOutputs(), TwoOutputsOptions(), TwoOutputsData()));
  constexpr int kWorkers = 3;
  auto communicators = CreateLocalGroup(kWorkers).value();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      ReplicaGroup::Communicators own;
      own.push_back(std::move(communicators[worker]));
      auto group = ReplicaGroup::Create(
                       std::move(own),
                       {.worker_index = worker, .worker_count = kWorkers})
                       .value();
      SynchronousStrategy strategy(std::move(group),
                                   {.name = "multi_worker_mirrored",
                                    .communication = {.bytes_per_pack = 64},
                                    .overlaps_communication = true});
      ASSERT_OK_AND_ASSIGN(
          const Trained got,
          Train(strategy, TwoOutputs(), TwoOutputsOptions(), TwoOutputsData()));
      ExpectSame(got, wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster
