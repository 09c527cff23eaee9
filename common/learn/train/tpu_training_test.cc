// Tests that training on the devices of a PJRT plugin equals training on one
// CPU. The plugin for CPUs simulates the devices.

#include <cmath>
#include <cstdint>
#include <cstdlib>
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
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
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

TEST_F(TpuTrainingTest, OneDeviceEqualsOneCpu) {
  const Dataset data = Examples(10 * kBatch, {kFeatures}).Batch(kBatch);
  const auto cpu = OneCpu();
  const auto tpu = Tpu(1);
  ASSERT_OK_AND_ASSIGN(
      const Trained wanted,
      Train(*cpu, Classifier(), OptionsWith(Sgd({.learning_rate = 0.1})), data,
            3));
  ASSERT_OK_AND_ASSIGN(
      const Trained got,
      Train(*tpu, Classifier(), OptionsWith(Sgd({.learning_rate = 0.1})), data,
            3));
  EXPECT_EQ(got.losses.size(), 30u);
  EXPECT_LT(got.losses.back(), got.losses.front());
  ExpectSame(got, wanted, 1e-5);
}

}  // namespace
}  // namespace muster
