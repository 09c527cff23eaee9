// Tests that training on the devices of a PJRT plugin equals training on one
// CPU. The plugin for CPUs simulates the devices.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/tpu/tpu_strategy.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kFeatures = 12;
constexpr int64_t kClasses = 3;
constexpr int64_t kBatch = 16;

const char* PluginPath() {
  const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
  return plugin != nullptr && *plugin != '\0' ? plugin : nullptr;
}

std::unique_ptr<TpuStrategy> Tpu(int device_count) {
  auto system = InitializeTpuSystem(
      {.plugin = PluginPath(), .cpu_device_count = device_count});
  EXPECT_OK(system);
  return TpuStrategy::Create(*system).value();
}

std::unique_ptr<DefaultStrategy> OneCpu() {
  return DefaultStrategy::Create({.thread_count = 1}).value();
}

float Drawn(uint64_t stream, int64_t i) {
  return static_cast<float>(FoldIn(stream, static_cast<uint64_t>(i)) % 2001) /
             1000 -
         1;
}

// `count` examples of `shape`, whose class depends on the first elements.
Dataset Examples(int64_t count, Shape shape) {
  const int64_t size = shape.element_count();
  shape.InsertDim(0, count);
  Tensor x(DType::kFloat32, shape);
  Tensor y(DType::kInt64, {count});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = Drawn(1, i);
  }
  for (int64_t i = 0; i < count; ++i) {
    const float first =
        x.flat<float>()[i * size] + x.flat<float>()[i * size + 1];
    y.mutable_flat<int64_t>()[i] = first < -0.3 ? 0 : first < 0.3 ? 1 : 2;
  }
  return Dataset::FromTensorSlices({x, y});
}

// Records the loss of each step.
class LossRecorder final : public Callback {
 public:
  absl::Status OnTrainBatchEnd(Model&, int64_t, const Logs& logs) override {
    losses_.push_back(logs.at("loss"));
    return absl::OkStatus();
  }
  const std::vector<double>& losses() const { return losses_; }

 private:
  std::vector<double> losses_;
};

struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> weights;
  History history;
};

absl::StatusOr<Trained> Train(Strategy& strategy, Model model,
                              CompileOptions options, const Dataset& data,
                              int epochs) {
  RETURN_IF_ERROR(model.Compile(strategy, std::move(options)));
  LossRecorder recorder;
  Trained trained;
  ASSIGN_OR_RETURN(trained.history,
                   model.Fit(data, {.epochs = epochs,
                                    .verbose = Verbosity::kSilent,
                                    .callbacks = {&recorder}}));
  trained.losses = recorder.losses();
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  return trained;
}

void ExpectSame(const Trained& got, const Trained& wanted, double tolerance) {
  ASSERT_EQ(got.losses.size(), wanted.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], wanted.losses[i], tolerance) << "step " << i;
  }
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t w = 0; w < got.weights.size(); ++w) {
    for (int64_t i = 0; i < got.weights[w].element_count(); ++i) {
      ASSERT_NEAR(got.weights[w].ElementAsDouble(i),
                  wanted.weights[w].ElementAsDouble(i), tolerance)
          << "weight " << w << ", element " << i;
    }
  }
}

Model Classifier() {
  return Sequential({Dense(16, {.activation = Activation::kRelu}),
                     Dense(8, {.activation = Activation::kTanh}),
                     Dense(kClasses)});
}

CompileOptions OptionsWith(const Optimizer& optimizer) {
  return {.optimizer = optimizer,
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {SparseCategoricalAccuracy()},
          .seed = 17};
}

class TpuTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (PluginPath() == nullptr) {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
  }
};

std::unique_ptr<MirroredStrategy> Mirrored(int replica_count) {
  MirroredStrategyOptions options{.thread_count = 1};
  for (int i = 0; i < replica_count; ++i) {
    options.devices.push_back(absl::StrCat("cpu:", i));
  }
  return MirroredStrategy::Create(options).value();
}

// Expects that training on 1, 2 and 4 devices equals training on one CPU.
void ExpectEqualsOneCpu(const std::function<Model()>& model,
                        const Optimizer& optimizer, const Dataset& data,
                        double tolerance = 1e-5) {
  const auto cpu = OneCpu();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*cpu, model(), OptionsWith(optimizer), data, 3));
  EXPECT_EQ(wanted.losses.size(), 30u);
  for (const int device_count : {1, 2, 4}) {
    SCOPED_TRACE(absl::StrCat(device_count, " devices"));
    const auto tpu = Tpu(device_count);
    ASSERT_OK_AND_ASSIGN(const Trained got,
                         Train(*tpu, model(), OptionsWith(optimizer), data, 3));
    ExpectSame(got, wanted, tolerance);
  }
}

Dataset TenBatches() {
  return Examples(10 * kBatch, {kFeatures}).Batch(kBatch);
}

TEST_F(TpuTrainingTest, MultilayerPerceptronEqualsOneCpu) {
  ExpectEqualsOneCpu(Classifier, Sgd({.learning_rate = 0.1}), TenBatches());
}

TEST_F(TpuTrainingTest, MomentumEqualsOneCpu) {
  ExpectEqualsOneCpu(
      Classifier,
      Sgd({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true},
          {.weight_decay = 0.01}),
      TenBatches());
}

TEST_F(TpuTrainingTest, AdamEqualsOneCpu) {
  ExpectEqualsOneCpu(Classifier, Adam({.learning_rate = 0.01}), TenBatches(),
                     5e-5);
}

TEST_F(TpuTrainingTest, ClippedGradientsEqualThoseOfOneCpu) {
  ExpectEqualsOneCpu(Classifier,
                     Sgd({.learning_rate = 0.5}, {.global_clipnorm = 0.3}),
                     TenBatches());
  ExpectEqualsOneCpu(Classifier, Sgd({.learning_rate = 0.5}, {.clipnorm = 0.2}),
                     TenBatches());
  ExpectEqualsOneCpu(Classifier,
                     Sgd({.learning_rate = 0.5}, {.clipvalue = 0.02}),
                     TenBatches());
}

TEST_F(TpuTrainingTest, AccumulationAndAveragesEqualThoseOfOneCpu) {
  ExpectEqualsOneCpu(Classifier,
                     Sgd({.learning_rate = 0.1, .momentum = 0.9},
                         {.gradient_accumulation_steps = 3,
                          .use_ema = true,
                          .ema_momentum = 0.9,
                          .ema_overwrite_frequency = 4}),
                     TenBatches());
}

TEST_F(TpuTrainingTest, DropoutDrawsTheNumbersOfOneCpu) {
  const auto model = [] {
    return Sequential({Dense(16, {.activation = Activation::kRelu}),
                       Dropout(0.4), Dense(kClasses)});
  };
  ExpectEqualsOneCpu(model, Sgd({.learning_rate = 0.1}), TenBatches());
}

// The devices cannot divide the last batch, of 5 examples.
TEST_F(TpuTrainingTest, SmallerLastBatchEqualsThatOfOneCpu) {
  ExpectEqualsOneCpu(Classifier, Sgd({.learning_rate = 0.1}),
                     Examples(9 * kBatch + 5, {kFeatures}).Batch(kBatch));
}

TEST_F(TpuTrainingTest, ConvolutionalNetworkEqualsOneCpu) {
  const auto model = [] {
    return Sequential({Conv2D(4, 3, {.activation = Activation::kRelu}),
                       MaxPooling2D(2), Flatten(), Dense(kClasses)});
  };
  ExpectEqualsOneCpu(model, Sgd({.learning_rate = 0.05}),
                     Examples(10 * kBatch, {8, 8, 1}).Batch(kBatch), 1e-4);
}

TEST_F(TpuTrainingTest, BatchNormalizationEqualsMirroredReplicas) {
  const auto model = [] {
    return Sequential({Conv2D(4, 3), BatchNormalization(),
                       Activate(Activation::kRelu), AveragePooling2D(2),
                       Flatten(), Dense(kClasses)});
  };
  const Dataset data = Examples(10 * kBatch, {8, 8, 1}).Batch(kBatch);
  for (const int count : {1, 2, 4}) {
    SCOPED_TRACE(absl::StrCat(count, " devices"));
    const auto mirrored = Mirrored(count);
    const auto tpu = Tpu(count);
    const CompileOptions options = OptionsWith(Sgd({.learning_rate = 0.05}));
    ASSERT_OK_AND_ASSIGN(const Trained wanted,
                         Train(*mirrored, model(), options, data, 3));
    ASSERT_OK_AND_ASSIGN(const Trained got,
                         Train(*tpu, model(), options, data, 3));
    ExpectSame(got, wanted, 1e-4);
  }
}

// Rows of numbers below `bound`, whose class is that of the first one.
Dataset Sentences(int64_t count, int64_t length, int64_t bound) {
  Tensor x(DType::kInt64, {count, length});
  Tensor y(DType::kInt64, {count});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<int64_t>()[i] =
        static_cast<int64_t>(FoldIn(3, static_cast<uint64_t>(i)) % bound);
  }
  for (int64_t i = 0; i < count; ++i) {
    y.mutable_flat<int64_t>()[i] = x.flat<int64_t>()[i * length] % kClasses;
  }
  return Dataset::FromTensorSlices({x, y});
}

// A step changes the rows of its batch only, and not the slots of others.
TEST_F(TpuTrainingTest, EmbeddingsEqualThoseOfOneCpu) {
  const auto model = [] {
    return Sequential({Embedding(40, 4), Flatten(), Dense(kClasses)});
  };
  const Dataset data = Sentences(10 * kBatch, 3, 30).Batch(kBatch);
  ExpectEqualsOneCpu(model, Sgd({.learning_rate = 0.1, .momentum = 0.9}), data);
  ExpectEqualsOneCpu(model, Adam({.learning_rate = 0.01}), data, 5e-5);
}

TEST_F(TpuTrainingTest, TransformerEqualsOneCpu) {
  const auto model = [] {
    const LayerOutput tokens = Input({6}, {.dtype = DType::kInt64});
    LayerOutput x = Embedding(20, 8)(tokens);
    x = Add()({x, MultiHeadAttention(2, 4)({x, x})});
    x = LayerNormalization()(x);
    x = Add()({x, Dense(8)(Dense(16, {.activation = Activation::kGelu})(x))});
    x = GlobalAveragePooling1D()(LayerNormalization()(x));
    return Functional(tokens, Dense(kClasses)(x));
  };
  ExpectEqualsOneCpu(model, Sgd({.learning_rate = 0.05}),
                     Sentences(10 * kBatch, 6, 20).Batch(kBatch));
}

TEST_F(TpuTrainingTest, Bfloat16IsCloseToThatOfOneCpu) {
  SetDTypePolicy(kMixedBfloat16Policy);
  ExpectEqualsOneCpu(Classifier, Sgd({.learning_rate = 0.05}), TenBatches(),
                     2e-2);
  SetDTypePolicy(kFloat32Policy);
}

TEST_F(TpuTrainingTest, EvaluatesAndPredictsEveryExampleOnce) {
  // Batches of 16, 16 and 5.
  const Dataset data = Examples(37, {kFeatures}).Batch(kBatch);
  const auto cpu = OneCpu();
  Model wanted = Classifier();
  ASSERT_OK(wanted.Compile(*cpu, OptionsWith(Sgd())));
  ASSERT_OK_AND_ASSIGN(const Logs wanted_logs, wanted.Evaluate(data));
  ASSERT_OK_AND_ASSIGN(const Tensor wanted_rows, wanted.Predict(data));
  for (const int count : {1, 4}) {
    SCOPED_TRACE(absl::StrCat(count, " devices"));
    const auto tpu = Tpu(count);
    Model model = Classifier();
    ASSERT_OK(model.Compile(*tpu, OptionsWith(Sgd())));
    ASSERT_OK_AND_ASSIGN(const Logs logs, model.Evaluate(data));
    EXPECT_NEAR(logs.at("loss"), wanted_logs.at("loss"), 1e-5);
    EXPECT_NEAR(logs.at("sparse_categorical_accuracy"),
                wanted_logs.at("sparse_categorical_accuracy"), 1e-6);
    ASSERT_OK_AND_ASSIGN(const Tensor rows, model.Predict(data));
    ASSERT_EQ(rows.type(), wanted_rows.type());
    for (int64_t i = 0; i < rows.element_count(); ++i) {
      ASSERT_NEAR(rows.ElementAsDouble(i), wanted_rows.ElementAsDouble(i), 1e-5)
          << i;
    }
  }
}

// Trains one epoch, saves, restores under another strategy and trains another
// epoch there.
absl::StatusOr<Trained> TrainAcross(Strategy& first, Strategy& second,
                                    const std::string& prefix) {
  const Dataset data = TenBatches();
  const CompileOptions options = OptionsWith(Adam({.learning_rate = 0.01}));
  Model saved = Classifier();
  RETURN_IF_ERROR(saved.Compile(first, options));
  RETURN_IF_ERROR(saved.Fit(data, {.verbose = Verbosity::kSilent}).status());
  RETURN_IF_ERROR(saved.SaveCheckpoint(prefix));
  Model restored = Classifier();
  RETURN_IF_ERROR(restored.Compile(second, options));
  RETURN_IF_ERROR(restored.Build({{DType::kFloat32, {kBatch, kFeatures}}}));
  RETURN_IF_ERROR(restored.RestoreCheckpoint(prefix).status());
  Trained trained;
  ASSIGN_OR_RETURN(trained.history,
                   restored.Fit(data, {.verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, restored.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  return trained;
}

TEST_F(TpuTrainingTest, CheckpointsMoveBetweenStrategies) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      TrainAcross(*OneCpu(), *OneCpu(), absl::StrCat(folder, "/cpu/ckpt-1")));
  ASSERT_OK_AND_ASSIGN(
      const Trained from_tpu,
      TrainAcross(*Tpu(2), *OneCpu(), absl::StrCat(folder, "/from/ckpt-1")));
  ExpectSame(from_tpu, wanted, 5e-5);
  ASSERT_OK_AND_ASSIGN(
      const Trained to_tpu,
      TrainAcross(*OneCpu(), *Tpu(2), absl::StrCat(folder, "/to/ckpt-1")));
  ExpectSame(to_tpu, wanted, 5e-5);
}

TEST_F(TpuTrainingTest, WeightsThatAreSetAreTrained) {
  const auto tpu = Tpu(2);
  Model model = Classifier();
  ASSERT_OK(model.Compile(*tpu, OptionsWith(Sgd({.learning_rate = 0.1}))));
  ASSERT_OK(model.Fit(TenBatches(), {.verbose = Verbosity::kSilent}));
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> weights, model.GetWeights());
  for (Tensor& weight : weights) {
    weight = Tensor::Zeros(weight.dtype(), weight.shape());
  }
  ASSERT_OK(model.SetWeights(weights));
  ASSERT_OK_AND_ASSIGN(const Logs logs, model.Evaluate(TenBatches()));
  EXPECT_NEAR(logs.at("loss"), std::log(kClasses), 1e-5);
}

TEST_F(TpuTrainingTest, RefusesOpWithoutTranslationBeforeTheFirstStep) {
  const auto tpu = Tpu(1);
  LossRecorder recorder;
  Model model = Sequential({Embedding(20, 4), LSTM(4), Dense(kClasses)});
  ASSERT_OK(model.Compile(*tpu, OptionsWith(Sgd())));
  EXPECT_THAT(
      model.Fit(Sentences(2 * kBatch, 4, 20).Batch(kBatch),
                {.verbose = Verbosity::kSilent, .callbacks = {&recorder}}),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("Recurrence \""), HasSubstr("lstm"))));
  EXPECT_TRUE(recorder.losses().empty());
}

TEST_F(TpuTrainingTest, RefusesOptimizerWithoutTranslationByName) {
  const auto tpu = Tpu(1);
  Model model = Classifier();
  ASSERT_OK(model.Compile(*tpu, OptionsWith(Lion())));
  EXPECT_THAT(
      model.Fit(TenBatches(), {.verbose = Verbosity::kSilent}),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("\"lion\""), HasSubstr("use SGD, Adam"))));
}

// Groups end at the smaller batch, at the end of an epoch, and where the
// optimizer applies accumulated gradients.
TEST_F(TpuTrainingTest, StepsOfOneExecutionEqualSingleSteps) {
  const Dataset data = Examples(9 * kBatch + 5, {kFeatures}).Batch(kBatch);
  const auto model = [] {
    return Sequential({Dense(16, {.activation = Activation::kRelu}),
                       Dropout(0.4), Dense(kClasses)});
  };
  for (const Optimizer& optimizer :
       {Adam({.learning_rate = 0.01}),
        Sgd({.learning_rate = 0.1}, {.gradient_accumulation_steps = 3})}) {
    for (const int count : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(count, " devices"));
      const auto single = Tpu(count);
      const auto grouped = Tpu(count);
      CompileOptions options = OptionsWith(optimizer);
      ASSERT_OK_AND_ASSIGN(const Trained wanted,
                           Train(*single, model(), options, data, 3));
      options.steps_per_execution = 4;
      ASSERT_OK_AND_ASSIGN(Trained got,
                           Train(*grouped, model(), options, data, 3));
      EXPECT_LT(got.losses.size(), wanted.losses.size());
      got.losses = wanted.losses;  // A group has one call of its callbacks.
      ExpectSame(got, wanted, 1e-5);
      EXPECT_NEAR(got.history.history.at("loss").back(),
                  wanted.history.history.at("loss").back(), 1e-5);
    }
  }
}

}  // namespace
}  // namespace muster
