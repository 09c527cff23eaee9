// The code of docs/custom_layers.md. tests/tidy/declared_names_test.py compares
// the two.
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/sequential.h"
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

using ::testing::DoubleNear;
using ::testing::SizeIs;

class Scale : public Layer {
 public:
  explicit Scale(double first_gain = 1) : first_gain_(first_gain) {}

 protected:
  void Build(const Shape& input) override {
    gain_ = AddWeight("gain", {input.dims().back()}, Constant(first_gain_));
  }

  Value Call(Value x, const CallContext& context) override {
    if (!context.training) return x * gain_;
    return x * gain_ + 0.1 * Tanh(x);
  }

 private:
  const double first_gain_;
  Weight gain_;
};

Loss Quantile(double quantile) {
  return Loss("quantile", [quantile](Value y_true, Value y_pred) {
    const Value error = y_true - y_pred;
    return Mean(Maximum(error * quantile, error * (quantile - 1)), {-1});
  });
}

// The greatest error of all examples would not add up; the mean error does.
Metric MeanError() {
  return Metric(
      "mean_error",
      [](Value y_true, Value y_pred, Value sample_weight) {
        return MeanStatistics(y_pred - y_true, sample_weight);
      },
      MeanResult);
}

Metric MeanErrorOfColumns() {
  return Metric(
      "column_error",
      [](Value y_true, Value y_pred, Value) {
        const Value errors = Sum(y_pred - y_true, {0});
        const Value count = CountAlong(y_pred, {0});
        return Stack({errors, BroadcastLike(count, errors)}, 0);
      },
      Metric::Results([](absl::Span<const double> sums) {
        std::vector<double> means;
        const size_t columns = sums.size() / 2;
        for (size_t i = 0; i < columns; ++i) {
          means.push_back(sums[columns + i] == 0 ? 0
                                                 : sums[i] / sums[columns + i]);
        }
        return means;
      }));
}

History Train(Strategy& strategy) {
  Model model = Sequential({Input({2}), std::make_shared<Scale>(0.5),
                            Dense(2, {.use_bias = false})});
  EXPECT_OK(
      model.Compile(strategy, {.optimizer = Sgd(),
                               .loss = Quantile(0.9),
                               .metrics = {MeanError(), MeanErrorOfColumns()},
                               .seed = 1}));
  EXPECT_THAT(model.weights(), SizeIs(2));
  const absl::StatusOr<History> history = model.Fit(
      {Tensor::FromValues<float>({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1}),
       Tensor::Full(DType::kFloat32, {5, 2}, 3)},
      {.batch_size = 5, .epochs = 3, .verbose = Verbosity::kSilent});
  EXPECT_OK(history.status());
  return history.value_or(History());
}

TEST(CustomPartsTest, TrainAlikeInOneProcessAndOnReplicas) {
  const auto one = OneDeviceStrategy::Create({.thread_count = 1}).value();
  const auto two =
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"}}).value();
  const History expected = Train(*one);
  const History got = Train(*two);
  EXPECT_THAT(expected.history.at("column_error[1]"), SizeIs(3));
  for (const auto& [name, values] : expected.history) {
    ASSERT_EQ(got.history.count(name), 1) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_THAT(got.history.at(name)[i], DoubleNear(values[i], 1e-5)) << name;
    }
  }
}

}  // namespace
}  // namespace muster
