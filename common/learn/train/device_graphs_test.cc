// Tests that training with steps captured as CUDA graphs gives the same bits as
// training without graphs. MUSTER_TEST_GPU=real uses the GPU of the machine.

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
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/dtype_policy.h"
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
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kFeatures = 36;
constexpr int64_t kWords = 12;
constexpr int64_t kBatch = 8;
// Full batches and one of three examples, which require two plans.
constexpr int64_t kExamples = 9 * kBatch + 3;
constexpr int kEpochs = 3;

enum class Kind { kMlp, kConvolution, kEmbedding, kLoop };

struct Case {
  std::string name;
  Kind kind = Kind::kMlp;
  Optimizer optimizer = Adam({.learning_rate = 0.01});
  int gpu_count = 1;
  DTypePolicy policy = kFloat32Policy;
};

std::vector<Case> Cases() {
  const LearningRateSchedule schedule = ExponentialDecay(
      {.initial_learning_rate = 0.01, .decay_steps = 3, .decay_rate = 0.7});
  std::vector<Case> cases = {
      {.name = "Mlp"},
      {.name = "ConvolutionDropout", .kind = Kind::kConvolution},
      {.name = "EmbeddingRows", .kind = Kind::kEmbedding},
      {.name = "Loop", .kind = Kind::kLoop},
      {.name = "AdamSchedule", .optimizer = Adam({.learning_rate = schedule})},
      {.name = "ClippedMomentum",
       .optimizer = Sgd({.learning_rate = schedule, .momentum = 0.9},
                        {.global_clipnorm = 0.5})},
      {.name = "MixedFloat16", .policy = kMixedFloat16Policy},
      {.name = "ConvolutionMixedBfloat16",
       .kind = Kind::kConvolution,
       .policy = kMixedBfloat16Policy},
      {.name = "Averages",
       .optimizer = Adam({.learning_rate = 0.01},
                         {.use_ema = true, .ema_overwrite_frequency = 4})},
      {.name = "Accumulation",
       .optimizer =
           Adam({.learning_rate = 0.01}, {.gradient_accumulation_steps = 3})},
      {.name = "Muon", .optimizer = Muon({.learning_rate = 0.01})},
  };
  for (const Kind kind : {Kind::kMlp, Kind::kConvolution}) {
    cases.push_back({.name = absl::StrCat("TwoGpus", static_cast<int>(kind)),
                     .kind = kind,
                     .optimizer = Adam({.learning_rate = schedule}),
                     .gpu_count = 2});
  }
  return cases;
}

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
    y.mutable_flat<int64_t>()[i] = static_cast<int64_t>(FoldIn(2, i) % 3);
  }
  return Dataset::FromTensorSlices({x, y}).Batch(kBatch);
}

LayerPtr MakeLayers(Kind kind) {
  switch (kind) {
    case Kind::kMlp:
      return Sequential({Dense(16, {.activation = Activation::kRelu}),
                         Dropout(0.25), Dense(3)});
    case Kind::kConvolution:
      return Sequential({Reshape({6, 6, 1}), Conv2D(4, 3),
                         BatchNormalization({.momentum = 0.9}), ReLU(),
                         Dropout(0.25), Flatten(), Dense(3)});
    case Kind::kEmbedding:
      return Sequential({Embedding(kWords, 5), Flatten(), Dense(3)});
    case Kind::kLoop:
      return Sequential(
          {Reshape({3, 6, 2}), ConvLSTM1D(2, 3), Flatten(), Dense(3)});
  }
  return nullptr;
}

struct Trained {
  std::vector<Tensor> weights;
  std::vector<double> losses;
  int64_t graph_launches = 0;
};

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(int gpu_count) {
  std::unique_ptr<Strategy> strategy;
  if (gpu_count == 1) {
    ASSIGN_OR_RETURN(strategy, OneDeviceStrategy::Create(
                                   {.device = "gpu:0", .thread_count = 1}));
    return strategy;
  }
  MirroredStrategyOptions options{.thread_count = 1};
  for (int i = 0; i < gpu_count; ++i) {
    options.devices.push_back(absl::StrCat("gpu:", i));
  }
  ASSIGN_OR_RETURN(strategy, MirroredStrategy::Create(options));
  return strategy;
}

absl::StatusOr<int64_t> GraphLaunches(int gpu_count) {
  int64_t launches = 0;
  for (int i = 0; i < gpu_count; ++i) {
    ASSIGN_OR_RETURN(Device* const device,
                     DeviceSet::OfProcess().FindDevice(i));
    launches += device->graph_counters().launches;
  }
  return launches;
}

absl::StatusOr<Trained> Train(const Case& wanted, bool with_graphs) {
  DeviceSet::OfProcess().CaptureSteps(with_graphs);
  ASSIGN_OR_RETURN(const auto strategy, MakeStrategy(wanted.gpu_count));
  ASSIGN_OR_RETURN(const int64_t before, GraphLaunches(wanted.gpu_count));
  const DTypePolicyScope scope(wanted.policy);
  Model model = MakeLayers(wanted.kind);
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = wanted.optimizer,
                  .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                  .metrics = {SparseCategoricalAccuracy()},
                  .seed = 17}));
  Trained trained;
  ASSIGN_OR_RETURN(
      const History history,
      model.Fit(Batches(wanted.kind),
                {.epochs = kEpochs, .verbose = Verbosity::kSilent}));
  trained.losses = history.history.at("loss");
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  ASSIGN_OR_RETURN(const int64_t after, GraphLaunches(wanted.gpu_count));
  trained.graph_launches = after - before;
  return trained;
}

// Settings of the process, made before any test.
class TwoGpus : public ::testing::Environment {
 public:
  void SetUp() override { ASSERT_OK(UseGpusUnderTest(2)); }
};
const auto* const kGpus = ::testing::AddGlobalTestEnvironment(new TwoGpus);

class DeviceGraphsTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Cases, DeviceGraphsTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(DeviceGraphsTest, GraphsGiveTheBitsOfTrainingWithoutThem) {
  ASSERT_OK_AND_ASSIGN(const Trained eager, Train(GetParam(), false));
  ASSERT_OK_AND_ASSIGN(const Trained captured, Train(GetParam(), true));
  EXPECT_EQ(eager.graph_launches, 0);
  // At least one launch for each step with a full batch after the first.
  EXPECT_GE(captured.graph_launches, GetParam().gpu_count * (kEpochs * 9 - 3));
  EXPECT_EQ(captured.losses, eager.losses);
  ASSERT_EQ(captured.weights.size(), eager.weights.size());
  for (size_t i = 0; i < eager.weights.size(); ++i) {
    ASSERT_EQ(captured.weights[i].type(), eager.weights[i].type());
    EXPECT_EQ(
        std::memcmp(captured.weights[i].raw_data(), eager.weights[i].raw_data(),
                    eager.weights[i].size_bytes()),
        0)
        << "weight " << i;
  }
}

}  // namespace
}  // namespace muster
