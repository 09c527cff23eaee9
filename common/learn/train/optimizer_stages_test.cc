// Tests gradient accumulation, moving averages and rules that need whole
// variables, with the strategies of one process, on CPUs and on simulated GPUs.
// tests/golden compares one replica with Keras.

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
#include "common/core/device/device_set.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/swap_ema_weights.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_strategies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kBatch = 8;
constexpr int64_t kBatchCount = 4;
constexpr int64_t kExamples = (kBatchCount - 1) * kBatch + 3;
constexpr int64_t kWords = 9;

// Most words occur in some batches only.
Dataset Sentences() {
  Tensor ids(DType::kInt64, {kExamples, 2});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.mutable_flat<int64_t>()[i] =
        static_cast<int64_t>((i / (2 * kBatch) + FoldIn(1, i) % 3) % kWords);
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(2, i) % 2001) / 1000 - 1;
  }
  return Dataset::FromTensorSlices({ids, y}).Batch(kBatch);
}

absl::Status Compile(Model& model, Strategy& strategy,
                     const Optimizer& optimizer) {
  return model.Compile(strategy,
                       {.optimizer = optimizer, .loss = "mse", .seed = 3});
}

Model Reader() {
  return Sequential({Embedding(kWords, 2), Flatten(), Dense(1)});
}

using Weights = std::vector<std::vector<float>>;

absl::StatusOr<Weights> Train(Strategy& strategy, const Optimizer& optimizer) {
  Model model = Reader();
  RETURN_IF_ERROR(Compile(model, strategy, optimizer));
  RETURN_IF_ERROR(
      model.Fit(Sentences(), {.epochs = 2, .verbose = Verbosity::kSilent})
          .status());
  return WeightsOf(model);
}

constexpr int kGpuCount = 2;

// Runs before the first strategy uses a device.
class SimulatedGpus : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_OK(DeviceSet::OfProcess().UseSimulatedDevices(kGpuCount));
  }
};
const auto* const kSimulatedGpus =
    ::testing::AddGlobalTestEnvironment(new SimulatedGpus);

std::unique_ptr<Strategy> Alone(const std::string& device = "cpu:0") {
  return OneDeviceStrategy::Create({.device = device, .thread_count = 1})
      .value();
}

std::unique_ptr<Strategy> Mirrored(int replica_count,
                                   const std::string& kind = "cpu:") {
  MirroredStrategyOptions options{.thread_count = 1};
  for (int i = 0; i < replica_count; ++i) {
    options.devices.push_back(absl::StrCat(kind, i));
  }
  return MirroredStrategy::Create(options).value();
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Strategy>()> make;
};

class OptimizerStagesTest : public ::testing::TestWithParam<Case> {
 protected:
  static bool IsOnGpu() {
    return GetParam().name.ends_with("Gpu") ||
           GetParam().name.ends_with("Gpus");
  }
};

INSTANTIATE_TEST_SUITE_P(
    Strategies, OptimizerStagesTest,
    ::testing::Values(
        Case{"TwoReplicas", [] { return Mirrored(2); }},
        Case{"ThreeReplicas", [] { return Mirrored(3); }},
        Case{"CentralStorage",
             [] {
               return CentralStorageStrategy::Create(
                          {.compute_devices = {"cpu:0", "cpu:1"},
                           .thread_count = 1})
                   .value();
             }},
        // Uses gpu:0, which runs asynchronously to the host.
        Case{"DefaultOnGpu",
             [] {
               return DefaultStrategy::Create({.thread_count = 1}).value();
             }},
        Case{"OneGpu", [] { return Alone("gpu:0"); }},
        Case{"TwoGpus", [] { return Mirrored(kGpuCount, "gpu:"); }}),
    [](const auto& info) { return info.param.name; });

std::vector<OptimizerOptions> AllStages() {
  return {{.gradient_accumulation_steps = 3},
          {.clipnorm = 0.05, .gradient_accumulation_steps = 2},
          {.global_clipnorm = 0.05, .gradient_accumulation_steps = 2},
          {.use_ema = true, .ema_momentum = 0.7},
          {.gradient_accumulation_steps = 2,
           .use_ema = true,
           .ema_momentum = 0.7,
           .ema_overwrite_frequency = 2}};
}

TEST_P(OptimizerStagesTest, ReplicasTrainAsOne) {
  ASSERT_OK_AND_ASSIGN(
      const Weights plain,
      Train(*Alone(), Sgd({.learning_rate = 0.1, .momentum = 0.9})));
  for (const OptimizerOptions& stages : AllStages()) {
    const Optimizer optimizer =
        Sgd({.learning_rate = 0.1, .momentum = 0.9}, stages);
    SCOPED_TRACE(optimizer.message().ShortDebugString());
    ASSERT_OK_AND_ASSIGN(const Weights wanted, Train(*Alone(), optimizer));
    EXPECT_NE(wanted, plain);
    const auto strategy = GetParam().make();
    ASSERT_OK_AND_ASSIGN(const Weights got, Train(*strategy, optimizer));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i], Pointwise(FloatNear(2e-5), wanted[i]));
    }
  }
}

// Validation uses the averages, and training continues without them.
TEST_P(OptimizerStagesTest, SwapEmaWeightsEvaluatesWithAverages) {
  const Optimizer optimizer =
      Sgd({.learning_rate = 0.1}, {.use_ema = true, .ema_momentum = 0.5});
  const auto train = [&](Model& model, Callback* callback, int epochs) {
    FitOptions options{.epochs = epochs,
                       .validation_data = Sentences(),
                       .verbose = Verbosity::kSilent};
    if (callback != nullptr) options.callbacks.push_back(callback);
    return model.Fit(Sentences(), options);
  };
  for (const bool swap_on_epoch : {false, true}) {
    SwapEmaWeights swap({.swap_on_epoch = swap_on_epoch});
    const auto strategy = GetParam().make();
    Model model = Reader();
    ASSERT_OK(Compile(model, *strategy, optimizer));
    ASSERT_OK_AND_ASSIGN(const History one, train(model, &swap, 1));
    // Now the weights are the averages.
    ASSERT_OK_AND_ASSIGN(
        const Logs logs,
        model.Evaluate(Sentences(), {.verbose = Verbosity::kSilent}));
    EXPECT_FLOAT_EQ(one.history.at("val_loss")[0], logs.at("loss"));

    const auto plain_strategy = GetParam().make();
    Model plain = Reader();
    ASSERT_OK(Compile(plain, *plain_strategy, optimizer));
    ASSERT_OK_AND_ASSIGN(const History without, train(plain, nullptr, 3));
    EXPECT_NE(one.history.at("val_loss")[0], without.history.at("val_loss")[0]);
    const auto swapped_strategy = GetParam().make();
    Model swapped = Reader();
    ASSERT_OK(Compile(swapped, *swapped_strategy, optimizer));
    ASSERT_OK_AND_ASSIGN(const History with, train(swapped, &swap, 3));
    EXPECT_EQ(with.history.at("loss"), without.history.at("loss"));
    EXPECT_EQ(WeightsOf(plain), WeightsOf(swapped));
  }
}

TEST(OptimizerStages, SwapEmaWeightsNeedsAverages) {
  const auto strategy = Alone();
  Model model = Reader();
  ASSERT_OK(Compile(model, *strategy, Sgd()));
  SwapEmaWeights swap;
  EXPECT_THAT(
      model
          .Fit(Sentences(),
               {.verbose = Verbosity::kSilent, .callbacks = {&swap}})
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("use_ema")));
}

// Each replica updates whole variables.
TEST_P(OptimizerStagesTest, RulesOfWholeVariablesTrainAsOne) {
  const auto strategy = GetParam().make();
  for (const Optimizer& optimizer :
       {Lamb({.learning_rate = 0.1, .epsilon = 1e-3}),
        Adafactor({.learning_rate = 0.1}),
        Muon({.learning_rate = 0.1, .epsilon = 1e-3})}) {
    SCOPED_TRACE(optimizer.message().ShortDebugString());
    ASSERT_OK_AND_ASSIGN(const Weights wanted, Train(*Alone(), optimizer));
    ASSERT_OK_AND_ASSIGN(const Weights got, Train(*strategy, optimizer));
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i], Pointwise(FloatNear(2e-5), wanted[i]));
    }
  }
}

TEST(OptimizerStages, IterationsCountUpdatesAndSchedulesGradients) {
  const auto strategy = Alone();
  Model model = Reader();
  const Optimizer optimizer = Sgd(
      {.learning_rate = InverseTimeDecay(
           {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 1})},
      {.gradient_accumulation_steps = 3});
  ASSERT_OK(Compile(model, *strategy, optimizer));
  ASSERT_OK(model.Fit(Sentences(), {.epochs = 2, .verbose = Verbosity::kSilent})
                .status());
  EXPECT_THAT(model.iterations(), IsOkAndHolds(2 * kBatchCount / 3));
  ASSERT_OK_AND_ASSIGN(const double rate, model.learning_rate());
  EXPECT_FLOAT_EQ(rate, 1.0 / (1 + 2 * kBatchCount));
}

// Checkpoints are saved in the middle of an update, with sums, averages, and
// slots whose shapes differ from those of their variables.
TEST_P(OptimizerStagesTest, CheckpointsHoldSumsAndAverages) {
  const OptimizerOptions stages = {.clipnorm = 0.05,
                                   .gradient_accumulation_steps = 3,
                                   .use_ema = true,
                                   .ema_overwrite_frequency = 2};
  const Optimizer optimizer =
      IsOnGpu() ? Sgd({.learning_rate = 0.1, .momentum = 0.9}, stages)
                : Adafactor({.learning_rate = 0.1}, stages);
  const auto train = [&](Model& model) {
    return model.Fit(Sentences(), {.verbose = Verbosity::kSilent}).status();
  };
  const auto alone = Alone();
  const auto strategy = GetParam().make();
  for (const auto& [before, after] : {std::pair(alone.get(), strategy.get()),
                                      std::pair(strategy.get(), alone.get())}) {
    const std::string prefix = absl::StrCat(
        testing::TempDir(), "/stages_", GetParam().name, before == alone.get());
    Model model = Reader();
    ASSERT_OK(Compile(model, *before, optimizer));
    ASSERT_OK(train(model));
    ASSERT_OK(model.SaveCheckpoint(prefix));
    ASSERT_OK(train(model));
    const Weights wanted = WeightsOf(model);

    Model restored = Reader();
    ASSERT_OK(Compile(restored, *after, optimizer));
    ASSERT_OK(restored.Build({DType::kInt64, {Shape::kUnknown, 2}}));
    ASSERT_OK(restored.RestoreCheckpoint(prefix).status());
    ASSERT_OK(train(restored));
    const Weights got = WeightsOf(restored);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i], Pointwise(FloatNear(2e-5), wanted[i]));
    }
  }
}

}  // namespace
}  // namespace muster
