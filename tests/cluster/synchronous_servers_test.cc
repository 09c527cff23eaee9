// Synchronous training on parameter servers: its weights are those of one
// process that trains on the batches of all workers, whatever is lost.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/function.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"
#include "worker/testing/test_worker.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExamples = 96;

Dataset Data() {
  Tensor x(DType::kFloat32, {kExamples, 3});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] = static_cast<float>(FoldIn(2, i) % 2001) / 1000;
  }
  return Dataset::FromTensorSlices({x, y});
}

Model SmallModel() {
  return Sequential({Dense(4, {.activation = Activation::kTanh}), Dense(1)});
}

// Calls a function after each step.
class EachStep final : public Callback {
 public:
  using Action = std::function<void(int64_t step)>;
  explicit EachStep(Action action) : action_(std::move(action)) {}
  absl::Status OnTrainBatchEnd(Model&, int64_t step, const Logs&) override {
    action_(step);
    return absl::OkStatus();
  }

 private:
  const Action action_;
};

struct Training {
  Dataset data;
  int epochs = 1;
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  EachStep::Action on_step = [](int64_t) {};
};

// Returns the weights after training from the same initial weights.
std::vector<std::vector<float>> Train(Strategy& strategy,
                                      const Training& training) {
  Model model = SmallModel();
  EXPECT_OK(model.Compile(strategy, {.optimizer = Adam({.learning_rate = 0.02}),
                                     .loss = MeanSquaredError(),
                                     .seed = 7}));
  EachStep each_step(training.on_step);
  const auto history =
      model.Fit(training.data, {.epochs = training.epochs,
                                .steps_per_epoch = training.steps_per_epoch,
                                .verbose = Verbosity::kSilent,
                                .callbacks = {&each_step}});
  EXPECT_OK(history.status());
  const auto weights = model.GetWeights();
  EXPECT_OK(weights.status());
  std::vector<std::vector<float>> values;
  for (const Tensor& weight : *weights) {
    const auto flat = weight.flat<float>();
    values.emplace_back(flat.begin(), flat.end());
  }
  return values;
}

std::vector<std::vector<float>> TrainInOneProcess(const Training& training) {
  const auto strategy = DefaultStrategy::Create();
  EXPECT_OK(strategy.status());
  return Train(**strategy, training);
}

class SynchronousServersTest : public ::testing::Test {
 protected:
  // Connects to `cluster` for updates of the gradients of all workers but
  // `backup_count`.
  std::unique_ptr<ParameterServerStrategy> Connect(
      TestCluster& cluster, int backup_count = 0,
      ClusterConnection::Options options = {}) {
    options.rounds = {.gradient_count = cluster.worker_count() - backup_count,
                      .backup_count = backup_count};
    options.attempts_per_closure_max = 1000;
    const auto connected = cluster.Connect(options);
    EXPECT_OK(connected.status());
    return std::make_unique<ParameterServerStrategy>(
        (*connected)->connection(),
        ParameterServerStrategyOptions{.dispatches_batches =
                                           dispatches_batches_},
        Clock::Real());
  }

  // After a rollback, a loop that dispatches batches repeats some steps whose
  // updates were kept.
  bool dispatches_batches_ = true;

  static void ExpectNear(const std::vector<std::vector<float>>& actual,
                         const std::vector<std::vector<float>>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_THAT(actual[i], Pointwise(FloatNear(2e-5), expected[i]));
    }
  }
};

TEST_F(SynchronousServersTest, EqualsOneProcessWithTheBatchesOfAllWorkers) {
  TestCluster cluster(3, 2);
  const auto strategy = Connect(cluster);
  ExpectNear(Train(*strategy, {.data = Data().Batch(8), .epochs = 5}),
             TrainInOneProcess({.data = Data().Batch(24), .epochs = 5}));
}

// All batches are equal, so the weights depend only on the number of updates,
// and on which weights the gradients were computed with.
TEST_F(SynchronousServersTest, LostWorkersChangeNothing) {
  TestCluster cluster(3, 2);
  const auto strategy = Connect(cluster);
  RandomStream random(FoldIn(31, "kills"));
  const auto kill = [&](int64_t step) {
    if (step % 8 != 4) return;
    TestWorker& victim = cluster.worker(static_cast<int>(random.Below(2)));
    victim.running() ? victim.Kill() : victim.Start();
  };
  const Dataset same = Data().Batch(kExamples).Repeat();
  ExpectNear(
      Train(*strategy, {.data = same, .steps_per_epoch = 300, .on_step = kill}),
      TrainInOneProcess({.data = same, .steps_per_epoch = 100}));
  EXPECT_GT(strategy->Report().retry_count, 0);
}

TEST_F(SynchronousServersTest, BackupWorkersDoNotChangeTheUpdates) {
  TestCluster cluster(3, 2);
  const auto strategy = Connect(cluster, /*backup_count=*/1);
  const Dataset same = Data().Batch(kExamples).Repeat();
  ExpectNear(Train(*strategy, {.data = same, .steps_per_epoch = 300}),
             TrainInOneProcess({.data = same, .steps_per_epoch = 150}));
}

// Seven steps of an epoch are two updates, and one gradient of the next one.
TEST_F(SynchronousServersTest, ARoundGoesOnInTheNextEpoch) {
  TestCluster cluster(3, 1);
  const auto strategy = Connect(cluster);
  const Dataset same = Data().Batch(kExamples).Repeat();
  ExpectNear(
      Train(*strategy, {.data = same, .epochs = 3, .steps_per_epoch = 7}),
      TrainInOneProcess({.data = same, .steps_per_epoch = 7}));
}

TEST_F(SynchronousServersTest, ARollbackContinuesTheRoundOfItsSnapshot) {
  dispatches_batches_ = false;
  TestCluster cluster(3, 2);
  ClusterConnection::Options options;
  options.recovery.checkpoint_dir = absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  options.recovery.checkpoint_interval = absl::ZeroDuration();
  const auto strategy = Connect(cluster, 0, options);
  bool was_lost = false;
  const auto lose = [&](int64_t step) {
    if (step != 101 || std::exchange(was_lost, true)) return;
    cluster.KillServer(1);
    cluster.StartServer(1);
  };
  const Dataset same = Data().Batch(kExamples).Repeat();
  ExpectNear(
      Train(*strategy, {.data = same, .steps_per_epoch = 300, .on_step = lose}),
      TrainInOneProcess({.data = same, .steps_per_epoch = 100}));
  EXPECT_EQ(strategy->connection()->recovery().recovery_count(), 1);
}

TEST_F(SynchronousServersTest, RefusesClosuresOfCustomLoops) {
  TestCluster cluster(1, 1);
  const auto strategy = Connect(cluster);
  ClusterCoordinator coordinator(*strategy);
  const Function nothing = Function::Of("nothing", [] {});
  EXPECT_THAT(
      coordinator.Schedule(nothing, std::vector<FunctionArgument>()),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("synchronous")));
}

TEST_F(SynchronousServersTest, RefusesLossScaling) {
  TestCluster cluster(2, 1);
  const auto strategy = Connect(cluster);
  Model model = SmallModel();
  EXPECT_THAT(
      model.Compile(*strategy, {.optimizer = LossScaleOptimizer(Adam()),
                                .loss = MeanSquaredError()}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("loss scaling")));
}

}  // namespace
}  // namespace muster
