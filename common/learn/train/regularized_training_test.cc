// Tests penalties of weights with a loss that is a sum, in synchronous
// training: each replica adds a part of them, and the bits do not depend on the
// number of replicas.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kFeatures = 6;
constexpr int64_t kClasses = 3;
constexpr int64_t kBatch = 16;
constexpr int kMicroBatches = 4;

// Two full batches and one of three examples, for which one of four replicas
// has none.
Dataset Batches() {
  constexpr int64_t kExamples = 2 * kBatch + 3;
  Tensor x(DType::kFloat32, {kExamples, kFeatures});
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<int64_t>()[i] =
        static_cast<int64_t>(FoldIn(2, i) % kClasses);
  }
  return Dataset::FromTensorSlices({x, y}).Batch(kBatch);
}

struct Trained {
  std::vector<Tensor> weights;
  History history;
};

absl::StatusOr<Trained> Train(Strategy& strategy, double l2 = 0.3) {
  Model model = Sequential(
      {Dense(5, {.kernel_regularizer = L2(l2), .bias_regularizer = L1(l2)}),
       Dense(kClasses, {.kernel_regularizer = L2(l2)})});
  RETURN_IF_ERROR(model.Compile(
      strategy, {.optimizer = Sgd({.learning_rate = 0.01}),
                 .loss = SparseCategoricalCrossentropy(
                     {.from_logits = true, .reduction = Reduction::kSum}),
                 .seed = 3}));
  Trained trained;
  ASSIGN_OR_RETURN(
      trained.history,
      model.Fit(Batches(), {.epochs = 3, .verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  return trained;
}

absl::StatusOr<Trained> TrainOnOne() {
  ASSIGN_OR_RETURN(
      const auto one,
      OneDeviceStrategy::Create(
          {.thread_count = 1, .deterministic_micro_batches = kMicroBatches}));
  return Train(*one);
}

class RegularizedTrainingTest : public ::testing::TestWithParam<int> {};

TEST_P(RegularizedTrainingTest, ASumHasTheBitsOfOneReplica) {
  ASSERT_OK_AND_ASSIGN(const Trained wanted, TrainOnOne());
  MirroredStrategyOptions options = {
      .thread_count = 1, .deterministic_micro_batches = kMicroBatches};
  for (int i = 0; i < GetParam(); ++i) {
    options.devices.push_back(absl::StrCat("cpu:", i));
  }
  ASSERT_OK_AND_ASSIGN(const auto strategy, MirroredStrategy::Create(options));
  ASSERT_OK_AND_ASSIGN(const Trained got, Train(*strategy));
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual(got.weights[i], wanted.weights[i]))
        << "weight " << i;
  }
  EXPECT_EQ(got.history.history, wanted.history.history);
}

INSTANTIATE_TEST_SUITE_P(Replicas, RegularizedTrainingTest,
                         ::testing::Values(2, 4));

// The penalties are added once, not once for each micro-batch.
TEST(RegularizedSumTest, MicroBatchesTrainLikeOneBatch) {
  ASSERT_OK_AND_ASSIGN(const Trained got, TrainOnOne());
  const auto whole = DefaultStrategy::Create({.thread_count = 1}).value();
  ASSERT_OK_AND_ASSIGN(const Trained wanted, Train(*whole));
  ASSERT_OK_AND_ASSIGN(const Trained free, Train(*whole, /*l2=*/0));
  double effect = 0;
  for (size_t i = 0; i < wanted.weights.size(); ++i) {
    for (int64_t j = 0; j < wanted.weights[i].element_count(); ++j) {
      const double value = wanted.weights[i].ElementAsDouble(j);
      EXPECT_NEAR(got.weights[i].ElementAsDouble(j), value, 1e-5);
      effect = std::max(effect,
                        std::abs(value - free.weights[i].ElementAsDouble(j)));
    }
  }
  EXPECT_GT(effect, 0.01);
}

}  // namespace
}  // namespace muster
