// Loss scaling on parameter servers.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/lambda_callback.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"
#include "worker/testing/test_worker.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

std::unique_ptr<ParameterServerStrategy> Connect(TestCluster& cluster) {
  ClusterConnection::Options options;
  options.attempts_per_closure_max = 1000;
  auto strategy = cluster.Connect(options);
  EXPECT_OK(strategy.status());
  return *std::move(strategy);
}

FitOptions Quiet(int64_t steps) {
  return {.steps_per_epoch = steps,
          .verbose = Verbosity::kSilent,
          .fail_on_non_finite = false};
}

double ScaleOf(Strategy& strategy) {
  const absl::StatusOr<Tensor> scale = strategy.variables().Read("loss_scale");
  EXPECT_OK(scale.status());
  return scale.ok() ? scale->ElementAsDouble(0) : 0;
}

// Batches of 4. The third batch has an infinite label.
Dataset Data() {
  constexpr int64_t kExamples = 24;
  Tensor x(DType::kFloat32, {kExamples, 3});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] =
        i == 9 ? std::numeric_limits<float>::infinity()
               : static_cast<float>(FoldIn(2, i) % 2001) / 1000 - 1;
  }
  return Dataset::FromTensorSlices({x, y}).Batch(4);
}

absl::StatusOr<std::vector<std::vector<float>>> WeightsOf(const Model& model) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  std::vector<std::vector<float>> values;
  for (const Tensor& weight : weights) {
    values.emplace_back(weight.flat<float>().begin(),
                        weight.flat<float>().end());
  }
  return values;
}

struct Trained {
  std::vector<std::vector<float>> weights = {};
  double scale = 0;
  int64_t iterations = 0;
};

Model MakeModel(const DTypePolicy& policy) {
  const DTypePolicyScope scope(policy);
  return Sequential({Dense(5), Dense(1)});
}

absl::Status Compile(Model& model, Strategy& strategy) {
  return model.Compile(
      strategy,
      {.optimizer = LossScaleOptimizer(
           Sgd({.learning_rate = 0.1, .momentum = 0.9}, {.clipnorm = 1}),
           {.initial_scale = 1024, .dynamic_growth_steps = 3}),
       .loss = "mse",
       .seed = 3});
}

absl::StatusOr<Trained> StateOf(Model& model, Strategy& strategy) {
  Trained trained{.scale = ScaleOf(strategy)};
  ASSIGN_OR_RETURN(trained.weights, WeightsOf(model));
  ASSIGN_OR_RETURN(trained.iterations, model.iterations());
  return trained;
}

void ExpectSame(const Trained& got, const Trained& wanted) {
  EXPECT_EQ(got.scale, wanted.scale);
  EXPECT_EQ(got.iterations, wanted.iterations);
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_THAT(got.weights[i], Pointwise(FloatNear(1e-5), wanted.weights[i]));
  }
}

TEST(LossScaleOnServers, OneWorkerTrainsAsOneProcess) {
  for (const DTypePolicy& policy : {kFloat32Policy, kMixedFloat16Policy}) {
    ASSERT_OK_AND_ASSIGN(const auto alone,
                         DefaultStrategy::Create({.thread_count = 1}));
    Model wanted_model = MakeModel(policy);
    ASSERT_OK(Compile(wanted_model, *alone));
    ASSERT_OK(wanted_model.Fit(Data().Repeat(), Quiet(6)).status());
    ASSERT_OK_AND_ASSIGN(const Trained wanted, StateOf(wanted_model, *alone));
    EXPECT_EQ(wanted.scale, 1024);
    EXPECT_EQ(wanted.iterations, 5);

    TestCluster cluster(1, 2);
    const auto strategy = Connect(cluster);
    Model model = MakeModel(policy);
    ASSERT_OK(Compile(model, *strategy));
    ASSERT_OK(model.Fit(Data().Repeat(), Quiet(6)).status());
    ASSERT_OK_AND_ASSIGN(const Trained got, StateOf(model, *strategy));
    ExpectSame(got, wanted);
  }
}

// Each strategy resumes from a checkpoint, and from a Keras file, of the other
// strategy.
TEST(LossScaleOnServers, ItsStateIsSavedAndRestored) {
  const std::string folder = testing::TempDir();
  TestCluster cluster(1, 2);
  const auto servers = Connect(cluster);
  ASSERT_OK_AND_ASSIGN(const auto alone,
                       DefaultStrategy::Create({.thread_count = 1}));
  for (const auto& [before, after] :
       {std::pair<Strategy*, Strategy*>(servers.get(), alone.get()),
        std::pair<Strategy*, Strategy*>(alone.get(), servers.get())}) {
    Model model = MakeModel(kFloat32Policy);
    ASSERT_OK(Compile(model, *before));
    // {finite, finite, skipped, finite, finite}: the next finite step doubles
    // the scale.
    ASSERT_OK(model.Fit(Data().Repeat(), Quiet(5)).status());
    EXPECT_EQ(ScaleOf(*before), 512);
    ASSERT_OK(model.SaveCheckpoint(folder + "/loss_scale"));
    ASSERT_OK(model.Save(folder + "/loss_scale.keras"));
    ASSERT_OK(model.Fit(Data().Take(1), Quiet(1)).status());
    ASSERT_OK_AND_ASSIGN(const Trained wanted, StateOf(model, *before));
    EXPECT_EQ(wanted.scale, 1024);
    {
      Model restored = MakeModel(kFloat32Policy);
      ASSERT_OK(Compile(restored, *after));
      ASSERT_OK(restored.Build({{DType::kFloat32, {4, 3}}}));
      ASSERT_OK(restored.RestoreCheckpoint(folder + "/loss_scale").status());
      EXPECT_EQ(ScaleOf(*after), 512);
      ASSERT_OK(restored.Fit(Data().Take(1), Quiet(1)).status());
      ASSERT_OK_AND_ASSIGN(const Trained got, StateOf(restored, *after));
      ExpectSame(got, wanted);
    }
    ASSERT_OK_AND_ASSIGN(Model loaded,
                         LoadModel(*after, folder + "/loss_scale.keras"));
    EXPECT_EQ(ScaleOf(*after), 512);
    ASSERT_OK(loaded.Fit(Data().Take(1), Quiet(1)).status());
    ASSERT_OK_AND_ASSIGN(const Trained got, StateOf(loaded, *after));
    ExpectSame(got, wanted);
  }
}

// Adds 4 to the bias. Its gradient is infinite if the scale is at least 2^126.
std::vector<StepMetric> CountingStep(const StepTrace& step) {
  const Value prediction = step.Call(step.element[0]);
  const Value count = Cast(CountAlong(prediction, {0}), prediction.dtype());
  step.Minimize(Sum(prediction) * -4.0 / count);
  return {{"steps", MeanStatistics(prediction * 0.0 + 1.0)}};
}

// The scale is halved once and the step counts once, regardless of how many
// workers skip a step at one scale and how often a step is retried.
TEST(LossScaleOnServers, StepsCountOnceWhileWorkersDie) {
  constexpr int64_t kSteps = 300;
  TestCluster cluster(3, 2);
  const auto strategy = Connect(cluster);
  Model model = Sequential({Dense(1)});
  ASSERT_OK(model.Compile(
      *strategy, {.optimizer = LossScaleOptimizer(Sgd({.learning_rate = 1.0}),
                                                  {.initial_scale = 0x1.0p127}),
                  .train_step = CountingStep}));
  RandomStream random(FoldIn(37, "kills"));
  LambdaCallback killer(
      {.on_train_batch_end = [&](Model&, int64_t step, const Logs&) {
        if (step % 40 != 4) return absl::OkStatus();
        TestWorker& victim = cluster.worker(static_cast<int>(random.Below(2)));
        victim.running() ? victim.Kill() : victim.Start();
        return absl::OkStatus();
      }});
  FitOptions options = Quiet(kSteps);
  options.callbacks = {&killer};
  ASSERT_OK(model.Fit(Data().Repeat(), options).status());
  EXPECT_EQ(ScaleOf(*strategy), 0x1.0p125);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<int64_t> counts,
      strategy->variables().UpdateCounts({"loss_scale", "dense/bias"}));
  EXPECT_EQ(counts[0], kSteps);
  EXPECT_LT(counts[1], kSteps);
  ASSERT_OK_AND_ASSIGN(const auto weights, WeightsOf(model));
  EXPECT_EQ(weights[1][0], 4.0f * static_cast<float>(counts[1]));
}

}  // namespace
}  // namespace muster
