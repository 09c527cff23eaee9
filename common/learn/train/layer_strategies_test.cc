// Tests that layers that add to the loss, replace a weight or loop over time
// train equally with every strategy of one process.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_strategies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kTime = 3;
constexpr int64_t kFeatures = 4;
// The last batch is smaller, so replicas get different numbers of rows.
constexpr int64_t kExamples = 2 * 8 + 3;

Tensor Numbers(const Shape& shape, uint64_t seed) {
  Tensor numbers(DType::kFloat32, shape);
  uint64_t i = 0;
  for (float& number : numbers.mutable_flat<float>()) {
    number = static_cast<float>(FoldIn(seed, i++) % 1000) / 250 - 2;
  }
  return numbers;
}

Dataset Data() {
  return Dataset::FromTensorSlices({Numbers({kExamples, kTime, kFeatures}, 1),
                                    Numbers({kExamples, 1}, 2)})
      .Batch(8);
}

struct Trained {
  std::vector<std::vector<float>> weights;
  double loss = 0;
  double evaluated = 0;
};

using MakeLayers = std::function<std::vector<LayerPtr>()>;

absl::StatusOr<Trained> Train(Strategy& strategy, const MakeLayers& layers) {
  Model model = Sequential(layers());
  RETURN_IF_ERROR(
      model.Compile(strategy, {.optimizer = Sgd({.learning_rate = 0.02}),
                               .loss = MeanSquaredError(),
                               .seed = 3}));
  ASSIGN_OR_RETURN(
      const History history,
      model.Fit(Data(), {.epochs = 2, .verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(const Logs logs,
                   model.Evaluate(Data(), {.verbose = Verbosity::kSilent}));
  return Trained{.weights = WeightsOf(model),
                 .loss = history.history.at("loss").back(),
                 .evaluated = logs.at("loss")};
}

absl::StatusOr<Trained> TrainAlone(const MakeLayers& layers) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                   OneDeviceStrategy::Create({.thread_count = 1}));
  return Train(*strategy, layers);
}

// A cell that accumulates its weighted inputs.
class Adder : public Layer, public RNNCell {
 public:
  int input_count() const override { return 2; }
  int output_count() const override { return 2; }
  std::vector<Shape> StateShapes(const Shape&) const override { return {{2}}; }

 protected:
  void Build(const Shape& input) override {
    kernel_ = AddWeight("kernel", {input.dims().back(), 2}, GlorotUniform());
  }
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext&) override {
    const Value sum = Tanh(inputs[1] + MatMul(inputs[0], kernel_));
    return {sum * 2.0, sum};
  }

 private:
  Weight kernel_;
};

const std::vector<MakeLayers>& Cases() {
  static const auto& kCases = *new std::vector<MakeLayers>{
      [] {
        return std::vector<LayerPtr>{
            Flatten(), Dense(3),
            ActivityRegularization({.l1 = 0.01, .l2 = 0.02}), Dense(1)};
      },
      [] {
        return std::vector<LayerPtr>{Flatten(), SpectralNormalization(Dense(3)),
                                     SpectralNormalization(Dense(1))};
      },
      [] {
        return std::vector<LayerPtr>{RNN(MakeLayer<Adder>()), Dense(1)};
      },
      [] {
        return std::vector<LayerPtr>{
            RNN(StackedRNNCells({LSTMCell(3), GRUCell(2)})), Dense(1)};
      },
      [] {
        return std::vector<LayerPtr>{Reshape({kTime, kFeatures, 1}),
                                     ConvLSTM1D(2, 2), Flatten(), Dense(1)};
      },
      [] {
        return std::vector<LayerPtr>{
            Reshape({kTime, kFeatures, 1}),
            RandomBrightness(0.5, {.value_range = {-4, 4}}),
            RandomErasing(0.5, {.value_range = {-4, 4}}), Flatten(), Dense(1)};
      },
  };
  return kCases;
}

class LayerStrategiesTest : public ::testing::TestWithParam<LocalStrategy> {};
INSTANTIATE_TEST_SUITE_P(
    All, LayerStrategiesTest, ::testing::ValuesIn(LocalStrategies()),
    [](const ::testing::TestParamInfo<LocalStrategy>& info) {
      return info.param.name;
    });

TEST_P(LayerStrategiesTest, TrainAsInOneProcess) {
  for (const MakeLayers& layers : Cases()) {
    SCOPED_TRACE(layers()[1]->kind());
    ASSERT_OK_AND_ASSIGN(const Trained wanted, TrainAlone(layers));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Strategy> strategy,
                         GetParam().make());
    ASSERT_OK_AND_ASSIGN(const Trained got, Train(*strategy, layers));
    EXPECT_NEAR(got.loss, wanted.loss, 1e-4);
    EXPECT_NEAR(got.evaluated, wanted.evaluated, 1e-4);
    ASSERT_EQ(got.weights.size(), wanted.weights.size());
    for (size_t i = 0; i < got.weights.size(); ++i) {
      EXPECT_THAT(got.weights[i], Pointwise(FloatNear(1e-4), wanted.weights[i]))
          << "weight " << i;
    }
  }
}

TEST(ActivityRegularizationTest, AddsToTheLossInTrainingAndEvaluation) {
  const auto with = [](double l1) {
    return [l1]() -> std::vector<LayerPtr> {
      return {Flatten(), ActivityRegularization({.l1 = l1}), Dense(1)};
    };
  };
  ASSERT_OK_AND_ASSIGN(const Trained plain, TrainAlone(with(0)));
  ASSERT_OK_AND_ASSIGN(const Trained penalized, TrainAlone(with(0.5)));
  const Tensor x = Numbers({kExamples, kTime, kFeatures}, 1);
  double sum = 0;
  for (const float number : x.flat<float>()) sum += std::abs(number);
  const double penalty = 0.5 * sum / kExamples;
  EXPECT_NEAR(penalized.loss - plain.loss, penalty, 1e-3);
  EXPECT_NEAR(penalized.evaluated - plain.evaluated, penalty, 1e-3);
}

}  // namespace
}  // namespace muster
