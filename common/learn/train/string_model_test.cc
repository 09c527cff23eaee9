#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/preprocessing/lookup.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Tests models whose inputs or outputs are strings.
namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Words and whether they are fruit.
Dataset Fruit() {
  const Tensor words = Tensor::FromSpan<std::string>(
      {6}, {"apple", "table", "pear", "chair", "plum", "a lamp, that is blue"});
  const Tensor labels = Tensor::FromSpan<int64_t>({6}, {1, 0, 1, 0, 1, 0});
  return Dataset::FromTensorSlices({words, labels});
}

LayerPtr FruitModel() {
  const LayerOutput word = Input({1}, {.dtype = DType::kString});
  const LayerOutput rows = Embedding(8, 4)(StringLookup()(word));
  return Functional(word, Dense(2)(Flatten()(rows)));
}

void ExpectLearns(Strategy& strategy) {
  const LayerPtr layers = FruitModel();
  ASSERT_OK(Adapt(layers, Fruit().Batch(4)));
  Model model(layers);
  ASSERT_OK(model.Compile(
      strategy, {.optimizer = Adam({.learning_rate = 0.1}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {SparseCategoricalAccuracy()}}));
  // The last batch is smaller than the others.
  ASSERT_OK(
      model.Fit(Fruit().Batch(4), {.epochs = 30, .verbose = Verbosity::kSilent})
          .status());
  ASSERT_OK_AND_ASSIGN(const Logs logs, model.Evaluate(Fruit().Batch(4)));
  EXPECT_EQ(logs.at("sparse_categorical_accuracy"), 1);
}

TEST(StringModelTest, LearnsInOneProcess) {
  ASSERT_OK_AND_ASSIGN(const auto strategy, DefaultStrategy::Create());
  ExpectLearns(*strategy);
}

TEST(StringModelTest, LearnsOnSeveralReplicas) {
  ASSERT_OK_AND_ASSIGN(
      const auto strategy,
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"}}));
  ExpectLearns(*strategy);
}

TEST(StringModelTest, PredictsStrings) {
  const StringLookupOptions options = {.vocabulary = {"red", "green"},
                                       .invert = true};
  Model model(Sequential(
      {Input({1}, {.dtype = DType::kInt64}), StringLookup(options)}));
  ASSERT_OK(model.Compile({}));
  const Dataset ids =
      Dataset::FromTensorSlices({Tensor::FromSpan<int64_t>({3, 1}, {1, 2, 7})});
  ASSERT_OK_AND_ASSIGN(const Tensor words, model.Predict(ids.Batch(2)));
  EXPECT_THAT(words.flat<std::string>(), ElementsAre("red", "green", "[UNK]"));
}

TEST(StringModelTest, AnUnknownTokenFailsTheStepWhereThereIsNoIndexForIt) {
  Model model(Sequential(
      {Input({1}, {.dtype = DType::kString}),
       StringLookup({.num_oov_indices = 0, .vocabulary = {"apple"}})}));
  ASSERT_OK(model.Compile({}));
  EXPECT_THAT(model.Predict(Fruit().Batch(6)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"table\" is not in the vocabulary")));
}

TEST(StringModelTest, SaysThatThereIsNoVocabulary) {
  Model model(FruitModel());
  ASSERT_OK(model.Compile({}));
  EXPECT_THAT(model.Predict(Fruit().Batch(6)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("there is no vocabulary")));
}

}  // namespace
}  // namespace muster
