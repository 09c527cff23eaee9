// Tests that training on a GPU equals training on the CPU within float32
// rounding. MUSTER_TEST_GPU=real uses the GPU of the machine.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
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
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/recurrent/conv_lstm.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kFeatures = 36;
constexpr int64_t kWords = 12;  // Vocabulary size of the embedding.
constexpr int64_t kClasses = 3;
constexpr int64_t kBatch = 16;
// Four full batches and one of five examples, which require two plans.
constexpr int64_t kExamples = 4 * kBatch + 5;
constexpr int kEpochs = 20;  // 100 steps.

// Settings of the process, made before any test.
class FourGpus : public ::testing::Environment {
 public:
  void SetUp() override { ASSERT_OK(UseGpusUnderTest(4)); }
};
const auto* const kGpus = ::testing::AddGlobalTestEnvironment(new FourGpus);

enum class Kind { kMlp, kConvolution, kEmbedding, kSynchronized, kLoop };

Dataset Batches(Kind kind) {
  const bool is_words = kind == Kind::kEmbedding;
  Tensor x(is_words ? DType::kInt64 : DType::kFloat32, {kExamples, kFeatures});
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const uint64_t draw = FoldIn(1, i);
    if (is_words) {
      x.mutable_flat<int64_t>()[i] = static_cast<int64_t>(draw % kWords);
    } else {
      x.mutable_flat<float>()[i] = static_cast<float>(draw % 2001) / 1000 - 1;
    }
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    const double first = x.ElementAsDouble(i * kFeatures);
    y.mutable_flat<int64_t>()[i] = first < (is_words ? kWords / 2 : 0) ? 0 : 2;
  }
  return Dataset::FromTensorSlices({x, y}).Batch(kBatch);
}

LayerPtr MakeLayers(Kind kind) {
  switch (kind) {
    case Kind::kMlp:
      return Sequential({Dense(16, {.activation = Activation::kRelu}),
                         Dense(8, {.activation = Activation::kTanh}),
                         Dense(kClasses)});
    case Kind::kConvolution:
      return Sequential({Reshape({6, 6, 1}), Conv2D(4, 3),
                         BatchNormalization({.momentum = 0.9}), ReLU(),
                         Dropout(0.25), Flatten(), Dense(kClasses)});
    case Kind::kEmbedding:
      return Sequential({Embedding(kWords, 5), Flatten(), Dense(kClasses)});
    case Kind::kSynchronized:
      return Sequential(
          {Dense(8),
           BatchNormalization({.momentum = 0.9, .synchronized = true}), ReLU(),
           Dense(kClasses)});
    case Kind::kLoop:
      return Sequential(
          {Reshape({3, 6, 2}), ConvLSTM1D(2, 3), Flatten(), Dense(kClasses)});
  }
  return nullptr;
}

TensorType InputType(Kind kind) {
  return {kind == Kind::kEmbedding ? DType::kInt64 : DType::kFloat32,
          {Shape::kUnknown, kFeatures}};
}

struct TrainOptions {
  Kind kind = Kind::kMlp;
  Optimizer optimizer = Adam({.learning_rate = 0.01});
  int epochs = kEpochs;
  std::vector<Callback*> callbacks = {};
  // Checkpoints before and after training; empty: none.
  std::string restored = "";
  std::string saved = "";
};

struct Trained {
  std::vector<Tensor> weights;
  History history;
};

absl::StatusOr<Trained> Train(Strategy& strategy,
                              const TrainOptions& options = {}) {
  Model model = MakeLayers(options.kind);
  RETURN_IF_ERROR(model.Compile(
      strategy, {.optimizer = options.optimizer,
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {SparseCategoricalAccuracy()},
                 .seed = 17}));
  const Dataset data = Batches(options.kind);
  if (!options.restored.empty()) {
    RETURN_IF_ERROR(model.Build(InputType(options.kind)));
    RETURN_IF_ERROR(model.RestoreCheckpoint(options.restored).status());
  }
  Trained trained;
  ASSIGN_OR_RETURN(trained.history,
                   model.Fit(data, {.epochs = options.epochs,
                                    .verbose = Verbosity::kSilent,
                                    .callbacks = options.callbacks}));
  if (!options.saved.empty()) {
    RETURN_IF_ERROR(model.SaveCheckpoint(options.saved));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  return trained;
}

absl::StatusOr<Trained> TrainOn(const std::string& device,
                                const TrainOptions& options = {}) {
  ASSIGN_OR_RETURN(
      const auto strategy,
      OneDeviceStrategy::Create({.device = device, .thread_count = 1}));
  return Train(*strategy, options);
}

void ExpectNear(const Trained& got, const Trained& wanted) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    ASSERT_EQ(got.weights[i].type(), wanted.weights[i].type());
    for (int64_t j = 0; j < got.weights[i].element_count(); ++j) {
      ASSERT_NEAR(got.weights[i].ElementAsDouble(j),
                  wanted.weights[i].ElementAsDouble(j), 2e-5)
          << "weight " << i << ", element " << j;
    }
  }
}

void ExpectSameBits(const Trained& got, const Trained& wanted) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    ASSERT_EQ(got.weights[i].type(), wanted.weights[i].type());
    EXPECT_EQ(
        std::memcmp(got.weights[i].raw_data(), wanted.weights[i].raw_data(),
                    got.weights[i].size_bytes()),
        0)
        << "weight " << i;
  }
}

TEST(DeviceTrainingTest, GpuGivesTheWeightsOfTheCpu) {
  ASSERT_OK_AND_ASSIGN(const Trained on_cpu, TrainOn("cpu:0"));
  ASSERT_OK_AND_ASSIGN(const Trained on_gpu, TrainOn("gpu:0"));
  ExpectNear(on_gpu, on_cpu);
  ASSERT_OK_AND_ASSIGN(const MemoryReport memory,
                       DeviceSet::OfProcess().GetMemoryInfo(0));
  EXPECT_GT(memory.peak_bytes, 0);
}

TEST(DeviceTrainingTest, TwoGpusTrainAsOne) {
  ASSERT_OK_AND_ASSIGN(const Trained one, TrainOn("cpu:0"));
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       MirroredStrategy::Create(
                           {.devices = {"gpu:0", "gpu:1"}, .thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const Trained two, Train(*strategy));
  ExpectNear(two, one);
}

absl::StatusOr<Trained> TrainMirrored(const std::string& kind, int count,
                                      MirroredStrategyOptions strategy,
                                      const TrainOptions& options) {
  for (int i = 0; i < count; ++i) {
    strategy.devices.push_back(absl::StrCat(kind, ":", i));
  }
  strategy.thread_count = 1;
  ASSIGN_OR_RETURN(const auto created, MirroredStrategy::Create(strategy));
  return Train(*created, options);
}

TEST(DeviceTrainingTest, EachCrossDeviceOpTrainsFourGpusAsTheCpu) {
  const TrainOptions options = {.epochs = 4};
  ASSERT_OK_AND_ASSIGN(const Trained one, TrainOn("cpu:0", options));
  for (const auto& ops :
       {ReductionToOneDevice(), HierarchicalCopyAllReduce().value(),
        NcclAllReduce().value()}) {
    SCOPED_TRACE(ops->name());
    ASSERT_OK_AND_ASSIGN(
        const Trained four,
        TrainMirrored("gpu", 4, {.cross_device_ops = ops}, options));
    ExpectNear(four, one);
  }
}

// Not Adam, which amplifies rounding errors of gradients that are nearly zero,
// such as those of a bias before a batch normalization.
Optimizer MomentumSgd() {
  return Sgd({.learning_rate = 0.02, .momentum = 0.9});
}

class EachModelTest : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EachModelTest,
                         ::testing::Values(Kind::kMlp, Kind::kConvolution,
                                           Kind::kEmbedding,
                                           Kind::kSynchronized));

TEST_P(EachModelTest, GpuGivesTheWeightsOfTheCpu) {
  const TrainOptions options = {.kind = GetParam(), .optimizer = MomentumSgd()};
  ASSERT_OK_AND_ASSIGN(const Trained on_cpu, TrainOn("cpu:0", options));
  ASSERT_OK_AND_ASSIGN(const Trained on_gpu, TrainOn("gpu:0", options));
  ExpectNear(on_gpu, on_cpu);
}

TEST_P(EachModelTest, DeterministicGpusGiveTheBitsOfOneAndTheWeightsOfCpus) {
  const TrainOptions options = {.kind = GetParam(), .optimizer = MomentumSgd()};
  const MirroredStrategyOptions strategy = {.deterministic_micro_batches = 4};
  ASSERT_OK_AND_ASSIGN(const Trained cpus,
                       TrainMirrored("cpu", 2, strategy, options));
  ASSERT_OK_AND_ASSIGN(const Trained one,
                       TrainMirrored("gpu", 1, strategy, options));
  ExpectNear(one, cpus);
  for (const int count : {2, 4}) {
    SCOPED_TRACE(count);
    ASSERT_OK_AND_ASSIGN(const Trained several,
                         TrainMirrored("gpu", count, strategy, options));
    ExpectSameBits(several, one);
  }
}

TEST_P(EachModelTest, TwoGpusGiveTheWeightsOfTwoCpus) {
  const TrainOptions options = {.kind = GetParam(), .optimizer = MomentumSgd()};
  ASSERT_OK_AND_ASSIGN(const Trained cpus,
                       TrainMirrored("cpu", 2, {}, options));
  ASSERT_OK_AND_ASSIGN(const Trained gpus,
                       TrainMirrored("gpu", 2, {}, options));
  ExpectNear(gpus, cpus);
}

TEST_P(EachModelTest, CheckpointsMoveBetweenCpuAndGpu) {
  const TrainOptions whole = {.kind = GetParam(),
                              .optimizer = Adagrad({.learning_rate = 0.02})};
  TrainOptions first = whole;
  first.epochs = 5;
  TrainOptions second = first;
  for (const auto& [from, to] :
       {std::pair("cpu:0", "gpu:0"), std::pair("gpu:0", "cpu:0")}) {
    first.saved = second.restored = absl::StrCat(
        testing::TempDir(), "/", from, "-", static_cast<int>(GetParam()));
    ASSERT_OK(TrainOn(from, first));
    ASSERT_OK_AND_ASSIGN(const Trained moved, TrainOn(to, second));
    ASSERT_OK_AND_ASSIGN(const Trained stayed, TrainOn(from, second));
    ExpectNear(moved, stayed);
  }
}

TEST(DeviceTrainingTest, EachOptimizerTrainsAsOnTheCpu) {
  const OptimizerOptions decay = {.weight_decay = 0.01};
  const Optimizer optimizers[] = {
      Sgd({.learning_rate = 0.02}, decay),
      Sgd({.learning_rate = 0.02, .momentum = 0.9, .nesterov = true}),
      AdamW({.learning_rate = 0.002}),
      Adam({.learning_rate = 0.002, .amsgrad = true}, {.clipnorm = 0.1}),
      Adamax({.learning_rate = 0.002}),
      Nadam({.learning_rate = 0.002}),
      RmsProp({.learning_rate = 0.002}, {.clipvalue = 0.01}),
      Adagrad({.learning_rate = 0.02}, {.global_clipnorm = 0.1}),
      Adadelta({.learning_rate = 0.5}),
      Lion({.learning_rate = 0.0005}, decay),
      Ftrl({.learning_rate = 0.02})};
  for (const Optimizer& optimizer : optimizers) {
    SCOPED_TRACE(optimizer.message().ShortDebugString());
    const TrainOptions options = {.optimizer = optimizer, .epochs = 5};
    ASSERT_OK_AND_ASSIGN(const Trained on_cpu, TrainOn("cpu:0", options));
    ASSERT_OK_AND_ASSIGN(const Trained on_gpu, TrainOn("gpu:0", options));
    ExpectNear(on_gpu, on_cpu);
  }
}

TEST(DeviceTrainingTest, ALoopTrainsAsOnTheCpu) {
  const TrainOptions options = {
      .kind = Kind::kLoop, .optimizer = MomentumSgd(), .epochs = 5};
  ASSERT_OK_AND_ASSIGN(const Trained on_cpu, TrainOn("cpu:0", options));
  ASSERT_OK_AND_ASSIGN(const Trained on_gpu, TrainOn("gpu:0", options));
  ExpectNear(on_gpu, on_cpu);
}

TEST(DeviceTrainingTest, DefaultStrategyUsesTheFirstGpu) {
  ASSERT_OK(DeviceSet::OfProcess().ResetPeakMemory(0));
  ASSERT_OK_AND_ASSIGN(const MemoryReport before,
                       DeviceSet::OfProcess().GetMemoryInfo(0));
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       DefaultStrategy::Create({.thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const Trained by_default, Train(*strategy));
  ASSERT_OK_AND_ASSIGN(const MemoryReport after,
                       DeviceSet::OfProcess().GetMemoryInfo(0));
  EXPECT_GT(after.peak_bytes, before.current_bytes);
  ASSERT_OK_AND_ASSIGN(const Trained on_cpu, TrainOn("cpu:0"));
  ExpectNear(by_default, on_cpu);
}

TEST(DeviceTrainingTest, StrategiesOfReplicasUseAllGpusUnlessSomeAreNamed) {
  ASSERT_OK_AND_ASSIGN(const auto mirrored, MirroredStrategy::Create());
  EXPECT_EQ(mirrored->num_replicas_in_sync(), 4);
  ASSERT_OK_AND_ASSIGN(const auto central, CentralStorageStrategy::Create());
  EXPECT_EQ(central->num_replicas_in_sync(), 4);
  ASSERT_OK_AND_ASSIGN(const auto named,
                       MirroredStrategy::Create({.devices = {"gpu:2"}}));
  EXPECT_EQ(named->num_replicas_in_sync(), 1);
}

// Records one weight at the end of each step and of each epoch.
class WeightRecorder : public Callback {
 public:
  explicit WeightRecorder(bool watches_steps) : watches_steps_(watches_steps) {}

  absl::Status OnTrainBatchEnd(Model& model, int64_t, const Logs&) override {
    return Add(model, &of_steps);
  }
  absl::Status OnEpochEnd(Model& model, int, Logs&) override {
    return Add(model, &of_epochs);
  }
  bool watches_steps() const override { return watches_steps_; }

  std::vector<double> of_steps;
  std::vector<double> of_epochs;

 private:
  static absl::Status Add(const Model& model, std::vector<double>* to) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
    to->push_back(weights[0].ElementAsDouble(0));
    return absl::OkStatus();
  }

  const bool watches_steps_;
};

TEST(DeviceTrainingTest, StepsOverlapUnlessACallbackWatchesThem) {
  WeightRecorder on_cpu(/*watches_steps=*/true);
  ASSERT_OK(TrainOn("cpu:0", {.epochs = 2, .callbacks = {&on_cpu}}));
  WeightRecorder of_each_step(/*watches_steps=*/true);
  ASSERT_OK(TrainOn("gpu:0", {.epochs = 2, .callbacks = {&of_each_step}}));
  EXPECT_THAT(of_each_step.of_steps,
              Pointwise(DoubleNear(1e-5), on_cpu.of_steps));

  WeightRecorder overlapped(/*watches_steps=*/false);
  ASSERT_OK(TrainOn("gpu:0", {.epochs = 2, .callbacks = {&overlapped}}));
  EXPECT_THAT(overlapped.of_epochs,
              Pointwise(DoubleNear(1e-5), on_cpu.of_epochs));
  // When the first step ends, the second one has already begun.
  EXPECT_THAT(overlapped.of_steps[0], DoubleNear(on_cpu.of_steps[1], 1e-5));
}

TEST(DeviceTrainingTest, DataErrorsHaveTheTextOfTheCpu) {
  Tensor x = Tensor::Zeros(DType::kInt64, {kBatch, kFeatures});
  x.mutable_flat<int64_t>()[7] = kWords;
  const Dataset wrong_word =
      Dataset::FromTensorSlices({x, Tensor::Zeros(DType::kInt64, {kBatch})})
          .Batch(kBatch);
  const Dataset wrong_label =
      Dataset::FromTensorSlices(
          {Tensor::Zeros(DType::kInt64, {kBatch, kFeatures}),
           Tensor::Full(DType::kInt64, {kBatch}, kClasses)})
          .Batch(kBatch);
  for (const Dataset& data : {wrong_word, wrong_label}) {
    absl::Status errors[2];
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK_AND_ASSIGN(
          const auto strategy,
          OneDeviceStrategy::Create({.device = i == 0 ? "cpu:0" : "gpu:0"}));
      Model model = MakeLayers(Kind::kEmbedding);
      ASSERT_OK(model.Compile(*strategy, {.loss = SparseCategoricalCrossentropy(
                                              {.from_logits = true})}));
      errors[i] = model.Fit(data, {.verbose = Verbosity::kSilent}).status();
      EXPECT_FALSE(errors[i].ok());
    }
    EXPECT_EQ(errors[1], errors[0]);
  }
}

TEST(DeviceTrainingTest, GpuThatIsNotThereIsNamed) {
  EXPECT_THAT(
      OneDeviceStrategy::Create({.device = "gpu:4"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"gpu:4\"")));
}

}  // namespace
}  // namespace muster
