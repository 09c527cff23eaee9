// Custom layers with loops and branches train under all strategies like the
// Keras layers that compute the same function.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device_set.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kExamples = 24;
constexpr int64_t kSteps = 5;
constexpr int64_t kFeatures = 3;
constexpr int64_t kUnits = 4;

// h = tanh(x kernel + h recurrent_kernel + bias), one time step at a time. If
// `by_while`, a While() loop counts the steps itself; otherwise Scan() does.
class HandwrittenRnn : public Layer {
 public:
  explicit HandwrittenRnn(bool by_while)
      : Layer("simple_rnn"), by_while_(by_while) {}

 protected:
  void Build(const Shape& input) override {
    kernel_ =
        AddWeight("kernel", {input.dims().back(), kUnits}, GlorotUniform());
    recurrent_ = AddWeight("recurrent_kernel", {kUnits, kUnits}, Orthogonal());
    bias_ = AddWeight("bias", {kUnits}, Zeros());
  }

  Value Call(Value x, const CallContext&) override {
    const Value rows = Transpose(x, {1, 0, 2});  // [time, batch, features]
    const Value start = MatMul(Gather(rows, FirstStep(x)), kernel_) * 0.0;
    return by_while_ ? ByWhile(rows, start) : ByScan(rows, start);
  }

 private:
  static Value FirstStep(Value x) {
    return x.builder()->Constant(Tensor::Scalar<int64_t>(0));
  }
  Value Next(Value x, Value h) const {
    return Tanh(MatMul(x, kernel_) + MatMul(h, recurrent_) + bias_);
  }

  Value ByScan(Value rows, Value start) const {
    return Scan({start}, {rows},
                [&](const ScanStep& step) -> ScanStep {
                  return {.carry = {Next(step.rows[0], step.carry[0])},
                          .rows = {}};
                })
        .carry[0];
  }

  // In its last iterations a branch keeps the state unchanged.
  Value ByWhile(Value rows, Value start) const {
    using Values = std::vector<Value>;
    return While(
        {FirstStep(rows), start},
        [](const Values& carry) { return carry[0] < 2 * kSteps; },
        [&](const Values& carry) -> Values {
          const Values next = Cond(
              carry[0] < kSteps,
              [&] { return Values{Next(Gather(rows, carry[0]), carry[1])}; },
              [&] { return Values{carry[1]}; });
          return {carry[0] + 1, next[0]};
        },
        {.maximum_iterations = 3 * kSteps})[1];
  }

  const bool by_while_;
  Weight kernel_;
  Weight recurrent_;
  Weight bias_;
};

Dataset Sequences() {
  Tensor x(DType::kFloat32, {kExamples, kSteps, kFeatures});
  Tensor y(DType::kFloat32, {kExamples, 1});
  const auto number = [](uint64_t salt, int64_t i) {
    return static_cast<float>(FoldIn(salt, i) % 2001) / 1000 - 1;
  };
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = number(1, i);
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] = number(2, i);
  }
  return Dataset::FromTensorSlices({x, y});
}

// Returns the initial weights of the layer and of the Dense layer after it.
std::vector<Tensor> InitialWeights() {
  std::vector<Tensor> weights;
  for (const Shape& shape :
       {Shape({kFeatures, kUnits}), Shape({kUnits, kUnits}), Shape({kUnits}),
        Shape({kUnits, 1}), Shape({1})}) {
    weights.emplace_back(DType::kFloat32, shape);
    uint64_t position = 1000 * weights.size();
    for (float& element : weights.back().mutable_flat<float>()) {
      element = static_cast<float>(FoldIn(3, position++) % 2001) / 1500 - 0.6f;
    }
  }
  return weights;
}

using Weights = std::vector<std::vector<float>>;

// Returns the weights after two epochs, whose last batches are smaller.
absl::StatusOr<Weights> Train(Strategy& strategy, const LayerPtr& layer) {
  Model model = Sequential({layer, Dense(1)});
  RETURN_IF_ERROR(model.Compile(
      strategy,
      {.optimizer = Sgd({.learning_rate = 0.2}), .loss = "mse", .seed = 3}));
  RETURN_IF_ERROR(model.Build({DType::kFloat32, {-1, kSteps, kFeatures}}));
  RETURN_IF_ERROR(model.SetWeights(InitialWeights()));
  RETURN_IF_ERROR(model
                      .Fit(Sequences().Batch(7),
                           {.epochs = 2, .verbose = Verbosity::kSilent})
                      .status());
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  Weights values;
  for (const Tensor& weight : weights) {
    const auto flat = weight.flat<float>();
    values.emplace_back(flat.begin(), flat.end());
  }
  return values;
}

// Runs before the first strategy asks for a device.
class SimulatedGpus : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_OK(DeviceSet::OfProcess().UseSimulatedDevices(1));
  }
};
const auto* const kSimulatedGpus =
    ::testing::AddGlobalTestEnvironment(new SimulatedGpus);

void ExpectTrainsAsKeras(Strategy& strategy) {
  ASSERT_OK_AND_ASSIGN(
      const auto alone,
      OneDeviceStrategy::Create({.device = "cpu:0", .thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const Weights wanted, Train(*alone, SimpleRNN(kUnits)));
  for (const bool by_while : {false, true}) {
    SCOPED_TRACE(by_while);
    ASSERT_OK_AND_ASSIGN(
        const Weights got,
        Train(strategy, std::make_shared<HandwrittenRnn>(by_while)));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i], Pointwise(FloatNear(2e-5), wanted[i])) << i;
    }
  }
}

TEST(ControlFlowTrainingTest, OneProcessTrainsAsKeras) {
  ASSERT_OK_AND_ASSIGN(
      const auto strategy,
      OneDeviceStrategy::Create({.device = "cpu:0", .thread_count = 2}));
  ExpectTrainsAsKeras(*strategy);
}

TEST(ControlFlowTrainingTest, ReplicasTrainAsKeras) {
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       MirroredStrategy::Create(
                           {.devices = {"cpu:0", "cpu:1"}, .thread_count = 1}));
  ExpectTrainsAsKeras(*strategy);
}

// Loops run on the host, and the rest of the step on the device.
TEST(ControlFlowTrainingTest, AGpuTrainsAsKeras) {
  ASSERT_OK_AND_ASSIGN(
      const auto strategy,
      OneDeviceStrategy::Create({.device = "gpu:0", .thread_count = 1}));
  ExpectTrainsAsKeras(*strategy);
}

TEST(ControlFlowTrainingTest, AWorkerOfParameterServersTrainsAsKeras) {
  TestCluster cluster(1, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, cluster.Connect());
  ExpectTrainsAsKeras(*strategy);
}

}  // namespace
}  // namespace muster
