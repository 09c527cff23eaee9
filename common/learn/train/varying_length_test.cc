// Tests that batches with different numbers of time steps train like batches
// padded to one length, because padding is masked.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/recurrent/bidirectional.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::DoubleNear;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kExamples = 20;
constexpr int64_t kBatch = 4;
constexpr int64_t kWords = 9;
constexpr int64_t kLongest = 12;

// Returns a sentence of 1 to kLongest words, with a label for each word or for
// the sentence.
absl::StatusOr<Element> Sentence(int64_t number, bool is_tagged) {
  const auto draw = [&](uint64_t stream, int64_t i, int64_t limit) {
    return static_cast<int64_t>(FoldIn(FoldIn(stream, number), i) % limit);
  };
  const int64_t length = 1 + draw(1, 0, kLongest);
  Tensor words(DType::kInt64, {length});
  Tensor tags(DType::kInt64, is_tagged ? Shape({length}) : Shape());
  for (int64_t i = 0; i < length; ++i) {
    words.mutable_flat<int64_t>()[i] = 1 + draw(2, i, kWords - 1);
  }
  for (int64_t i = 0; i < tags.element_count(); ++i) {
    tags.mutable_flat<int64_t>()[i] = draw(3, i, 3);
  }
  return Element{words, tags};
}

Dataset Sentences(bool is_tagged) {
  const Shape unknown = {Shape::kUnknown};
  return Dataset::Range(kExamples).MapElements(
      [is_tagged](const Element& element) {
        return Sentence(element[0].scalar<int64_t>(), is_tagged);
      },
      {{DType::kInt64, unknown},
       {DType::kInt64, is_tagged ? unknown : Shape()}});
}

Model Tagger() {
  return Sequential(
      {Embedding(kWords, 3, {.mask_zero = true}),
       Bidirectional(LSTM(3, {.sequence = {.return_sequences = true}})),
       Dense(3)});
}

Model Classifier() {
  return Sequential({Embedding(kWords, 3, {.mask_zero = true}),
                     GRU(4, {.sequence = {.return_sequences = true}}),
                     GlobalAveragePooling1D(), Dense(3)});
}

struct Trained {
  History history;
  std::vector<std::vector<float>> weights;
};

absl::StatusOr<Trained> Train(Strategy& strategy, Model model,
                              const Dataset& data) {
  RETURN_IF_ERROR(model.Compile(
      strategy, {.optimizer = Sgd({.learning_rate = 0.2}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {SparseCategoricalAccuracy()},
                 .seed = 4}));
  Trained trained;
  ASSIGN_OR_RETURN(
      trained.history,
      model.Fit(data, {.epochs = 2, .verbose = Verbosity::kSilent}));
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
  for (const auto& [name, values] : wanted.history.history) {
    EXPECT_THAT(got.history.history.at(name),
                Pointwise(DoubleNear(1e-5), values))
        << name;
  }
}

// A strategy stores the variables of its models, so each training uses a
// separate strategy.
std::unique_ptr<Strategy> MakeStrategy(bool is_mirrored) {
  if (!is_mirrored) return DefaultStrategy::Create({.thread_count = 1}).value();
  return MirroredStrategy::Create(
             {.devices = {"cpu:0", "cpu:1"}, .thread_count = 1})
      .value();
}

TEST(VaryingLengthTest, TagsTrainAsWithOneLength) {
  const Dataset sentences = Sentences(/*is_tagged=*/true);
  for (const bool is_mirrored : {false, true}) {
    ASSERT_OK_AND_ASSIGN(
        const Trained wanted,
        Train(*MakeStrategy(is_mirrored), Tagger(),
              sentences.PaddedBatch(
                  kBatch, {.padded_shapes = {{kLongest}, {kLongest}}})));
    ASSERT_OK_AND_ASSIGN(const Trained got,
                         Train(*MakeStrategy(is_mirrored), Tagger(),
                               sentences.PaddedBatch(kBatch)));
    ExpectSame(got, wanted);
    ASSERT_OK_AND_ASSIGN(
        const Trained rounded,
        Train(*MakeStrategy(is_mirrored), Tagger(),
              sentences.PaddedBatch(kBatch, {.length_multiple = 5})));
    ExpectSame(rounded, wanted);
  }
}

TEST(VaryingLengthTest, BucketsTrainAsWithOneLength) {
  const Dataset sentences = Sentences(/*is_tagged=*/false);
  const BucketOptions buckets = {.boundaries = {5, 9},
                                 .batch_sizes = {kBatch, kBatch, kBatch},
                                 .pad_to_bucket_boundary = true};
  BucketOptions one_length = buckets;
  one_length.pad_to_bucket_boundary = false;
  one_length.padded_shapes = {{kLongest}, {}};
  for (const bool is_mirrored : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const Trained wanted,
                         Train(*MakeStrategy(is_mirrored), Classifier(),
                               sentences.BucketBySequenceLength(one_length)));
    ASSERT_OK_AND_ASSIGN(const Trained got,
                         Train(*MakeStrategy(is_mirrored), Classifier(),
                               sentences.BucketBySequenceLength(buckets)));
    ExpectSame(got, wanted);
  }
}

}  // namespace
}  // namespace muster
