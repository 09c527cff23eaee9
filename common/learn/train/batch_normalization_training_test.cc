#include <cmath>
#include <cstdint>
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
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Tests statistics of batches that are divided among replicas.
namespace muster {
namespace {

constexpr int64_t kFeatures = 3;

Tensor Numbers(const Shape& shape, uint64_t seed) {
  Tensor numbers(DType::kFloat32, shape);
  uint64_t i = 0;
  for (float& number : numbers.mutable_flat<float>()) {
    number = static_cast<float>(FoldIn(seed, i++) % 1000) / 250 - 1;
  }
  return numbers;
}

std::unique_ptr<Strategy> Replicas(int count) {
  MirroredStrategyOptions options{.thread_count = 1};
  for (int i = 0; i < count; ++i) {
    options.devices.push_back(absl::StrCat("cpu:", i));
  }
  return MirroredStrategy::Create(options).value();
}

std::unique_ptr<Strategy> TwoReplicas() { return Replicas(2); }

// Returns the weights after two epochs: dense/kernel, dense/bias, gamma, beta,
// moving_mean, moving_variance, ...
absl::StatusOr<std::vector<Tensor>> Train(Strategy& strategy, bool synchronized,
                                          int64_t example_count,
                                          int64_t batch_size) {
  Model model = Sequential({
      Input({kFeatures}),
      Dense(4),
      BatchNormalization({.momentum = 0.5, .synchronized = synchronized}),
      Dense(1),
  });
  RETURN_IF_ERROR(
      model.Compile(strategy, {
                                  .optimizer = Sgd({.learning_rate = 0.1}),
                                  .loss = MeanSquaredError(),
                                  .seed = 3,
                              }));
  const Dataset data =
      Dataset::FromTensorSlices({Numbers({example_count, kFeatures}, 1),
                                 Numbers({example_count, 1}, 2)})
          .Batch(batch_size);
  RETURN_IF_ERROR(
      model.Fit(data, {.epochs = 2, .verbose = Verbosity::kSilent}).status());
  return model.GetWeights();
}

double Distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t j = 0; j < a[i].element_count(); ++j) {
      const double distance =
          std::abs(a[i].flat<float>()[j] - b[i].flat<float>()[j]);
      if (!(distance <= worst)) worst = distance;  // Keeps NaN.
    }
  }
  return worst;
}

TEST(BatchNormalizationTrainingTest, SynchronizedReplicasNormalizeAsOne) {
  const auto one = OneDeviceStrategy::Create({.thread_count = 1}).value();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                       Train(*one, /*synchronized=*/false, 16, 8));
  const auto two = TwoReplicas();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> together,
                       Train(*two, /*synchronized=*/true, 16, 8));
  EXPECT_LT(Distance(together, wanted), 1e-5);

  const auto apart = TwoReplicas();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> alone,
                       Train(*apart, /*synchronized=*/false, 16, 8));
  EXPECT_GT(Distance(alone, wanted), 1e-3);
}

// Two replicas get 3 + 2 examples. Three get 4 + 3 + 3, and 3 + 3 of the last
// batch.
TEST(BatchNormalizationTrainingTest, UnevenSynchronizedReplicasTrainAsOne) {
  for (const auto& [batch_size, replica_count] :
       std::vector<std::pair<int, int>>{{5, 2}, {10, 3}}) {
    const auto one = OneDeviceStrategy::Create({.thread_count = 1}).value();
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                         Train(*one, /*synchronized=*/false, 26, batch_size));
    const auto several = Replicas(replica_count);
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> together,
        Train(*several, /*synchronized=*/true, 26, batch_size));
    EXPECT_LT(Distance(together, wanted), 1e-5)
        << replica_count << " replicas, batches of " << batch_size;
  }
}

// A loss over pairs of examples, for which the examples of all replicas are
// gathered. It is a mean over the examples, so each replica's loss is weighted
// by its own number of examples.
TEST(BatchNormalizationTrainingTest, UnevenReplicasGatherForALossAsOne) {
  const auto train =
      [](Strategy& strategy) -> absl::StatusOr<std::vector<Tensor>> {
    Model model = Sequential({Input({kFeatures}), Dense(4), Dense(1)});
    const Loss pairs("pairs", [](Value, Value y) {
      return Mean(Square(y - Transpose(AllGather(y, 0), {1, 0})), {1});
    });
    RETURN_IF_ERROR(model.Compile(
        strategy,
        {.optimizer = Sgd({.learning_rate = 0.1}), .loss = pairs, .seed = 3}));
    const Dataset data = Dataset::FromTensorSlices(
                             {Numbers({13, kFeatures}, 1), Numbers({13, 1}, 2)})
                             .Batch(5);
    RETURN_IF_ERROR(model.Fit(data, {.verbose = Verbosity::kSilent}).status());
    return model.GetWeights();
  };
  const auto one = OneDeviceStrategy::Create({.thread_count = 1}).value();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, train(*one));
  const auto two = TwoReplicas();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> together, train(*two));
  EXPECT_LT(Distance(together, wanted), 1e-5);
}

// The only batch has one example, so one of the replicas has none.
TEST(BatchNormalizationTrainingTest, AReplicaWithoutExamplesMovesNothing) {
  for (const bool synchronized : {false, true}) {
    const auto one = OneDeviceStrategy::Create({.thread_count = 1}).value();
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                         Train(*one, /*synchronized=*/false, 1, 2));
    const auto two = TwoReplicas();
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         Train(*two, synchronized, 1, 2));
    EXPECT_LT(Distance(got, wanted), 1e-5) << synchronized;
  }
}

std::unique_ptr<Strategy> Deterministic(int replica_count) {
  MirroredStrategyOptions options{.thread_count = 1,
                                  .deterministic_micro_batches = 4};
  for (int i = 0; i < replica_count; ++i) {
    options.devices.push_back(absl::StrCat("cpu:", i));
  }
  return MirroredStrategy::Create(options).value();
}

// Each micro-batch has its own statistics, whichever replica computes it, or
// those of the global batch if they are synchronized. The last batch has two
// examples for four micro-batches.
TEST(BatchNormalizationTrainingTest, DeterministicModeGivesTheSameBits) {
  for (const bool synchronized : {false, true}) {
    const auto one = OneDeviceStrategy::Create(
                         {.thread_count = 1, .deterministic_micro_batches = 4})
                         .value();
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                         Train(*one, synchronized, 18, 8));
    for (const int replica_count : {1, 2, 3, 4}) {
      const auto strategy = Deterministic(replica_count);
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                           Train(*strategy, synchronized, 18, 8));
      EXPECT_EQ(Distance(got, wanted), 0)
          << replica_count << " replicas, synchronized: " << synchronized;
    }
  }
}

TEST(BatchNormalizationTrainingTest, SynchronizedMicroBatchesNormalizeAsOne) {
  const auto whole = OneDeviceStrategy::Create({.thread_count = 1}).value();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted,
                       Train(*whole, /*synchronized=*/false, 18, 8));
  const auto divided = Deterministic(2);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> together,
                       Train(*divided, /*synchronized=*/true, 18, 8));
  EXPECT_LT(Distance(together, wanted), 1e-5);
}

}  // namespace
}  // namespace muster
