// Tests loss scaling with the strategies of one process, on CPUs and on
// simulated GPUs, and with workers that train in sync. tests/golden compares
// one replica with Keras.

#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/callbacks/lambda_callback.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_strategies.h"
#include "common/learn/train/testing/local_workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Pointwise;

using Weights = std::vector<std::vector<float>>;

constexpr int64_t kBatch = 8;
constexpr int64_t kBatchCount = 7;
constexpr int64_t kWords = 9;

// Batches 1 and 4 have an infinite label, so their gradients are infinite.
Dataset Sentences(bool has_infinity = true) {
  constexpr int64_t kExamples = kBatchCount * kBatch;
  Tensor ids(DType::kInt64, {kExamples, 2});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.mutable_flat<int64_t>()[i] =
        static_cast<int64_t>((i / (2 * kBatch) + FoldIn(1, i) % 3) % kWords);
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    const bool is_infinite =
        has_infinity && (i == 1 * kBatch + 3 || i == 4 * kBatch + 6);
    y.mutable_flat<float>()[i] =
        is_infinite ? std::numeric_limits<float>::infinity()
                    : static_cast<float>(FoldIn(2, i) % 2001) / 1000 - 1;
  }
  return Dataset::FromTensorSlices({ids, y}).Batch(kBatch);
}

// A model with sparse gradients (of rows) and dense ones.
Model Reader(const DTypePolicy& policy) {
  const DTypePolicyScope scope(policy);
  return Sequential({Embedding(kWords, 3), Flatten(), Dense(4), Dense(1)});
}

Optimizer Momentum(const OptimizerOptions& options = {}) {
  return Sgd({.learning_rate = 0.1, .momentum = 0.9}, options);
}
Optimizer Scaled(const Optimizer& inner, int64_t growth_steps = 2) {
  return LossScaleOptimizer(
      inner, {.initial_scale = 1024, .dynamic_growth_steps = growth_steps});
}

absl::Status Compile(Model& model, Strategy& strategy,
                     const Optimizer& optimizer) {
  return model.Compile(strategy,
                       {.optimizer = optimizer, .loss = "mse", .seed = 3});
}

FitOptions Quiet(int epochs = 1) {
  return {.epochs = epochs,
          .verbose = Verbosity::kSilent,
          .fail_on_non_finite = false};
}

absl::Status Fit(Model& model, int epochs = 1) {
  return model.Fit(Sentences(), Quiet(epochs)).status();
}

double ScaleOf(Strategy& strategy, const std::string& name = "loss_scale") {
  const absl::StatusOr<Tensor> scale = strategy.variables().Read(name);
  EXPECT_OK(scale.status());
  return scale.ok() ? scale->ElementAsDouble(0) : 0;
}

struct Trained {
  Weights weights;
  double scale = 0;
  int64_t iterations = 0;
};

absl::StatusOr<Trained> StateOf(Model& model, Strategy& strategy) {
  Trained trained{.weights = WeightsOf(model), .scale = ScaleOf(strategy)};
  ASSIGN_OR_RETURN(trained.iterations, model.iterations());
  return trained;
}

absl::StatusOr<Trained> Train(Strategy& strategy, const DTypePolicy& policy,
                              const Optimizer& optimizer) {
  Model model = Reader(policy);
  RETURN_IF_ERROR(Compile(model, strategy, optimizer));
  RETURN_IF_ERROR(Fit(model, 2));
  return StateOf(model, strategy);
}

std::unique_ptr<Strategy> Alone() {
  return OneDeviceStrategy::Create({.device = "cpu:0", .thread_count = 1})
      .value();
}

void ExpectNear(const Trained& got, const Trained& wanted, double tolerance) {
  EXPECT_EQ(got.scale, wanted.scale);
  EXPECT_EQ(got.iterations, wanted.iterations);
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    EXPECT_THAT(got.weights[i],
                Pointwise(FloatNear(tolerance), wanted.weights[i]));
  }
}

Element FirstBatch() {
  Element batch;
  auto batches = Sentences().MakeIterator({}, 0);
  EXPECT_OK(batches.status());
  EXPECT_OK((*batches)->Next(&batch).status());
  return batch;
}

class LossScaleTest : public ::testing::TestWithParam<LocalStrategy> {
 protected:
  std::unique_ptr<Strategy> Make() {
    auto strategy = GetParam().make();
    EXPECT_OK(strategy.status());
    return *std::move(strategy);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, LossScaleTest,
                         ::testing::ValuesIn(LocalStrategies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LossScaleTest, ReplicasSkipStepsAsOneProcessDoes) {
  for (const OptimizerOptions& stages : std::vector<OptimizerOptions>{
           {},
           {.clipnorm = 0.05},
           {.global_clipnorm = 0.05},
           {.gradient_accumulation_steps = 2, .use_ema = true}}) {
    const Optimizer optimizer = Scaled(Momentum(stages));
    SCOPED_TRACE(optimizer.message().ShortDebugString());
    const auto alone = Alone();
    ASSERT_OK_AND_ASSIGN(const Trained wanted,
                         Train(*alone, kFloat32Policy, optimizer));
    // The steps are {f, skip, f, f, skip, f, f} twice, where f is finite.
    EXPECT_EQ(wanted.scale, 1024);
    EXPECT_EQ(wanted.iterations,
              stages.gradient_accumulation_steps == 2 ? 5 : 10);
    for (const std::vector<float>& weight : wanted.weights) {
      EXPECT_THAT(weight, Each(Lt(10)));
    }
    const auto strategy = Make();
    ASSERT_OK_AND_ASSIGN(const Trained got,
                         Train(*strategy, kFloat32Policy, optimizer));
    ExpectNear(got, wanted, 2e-5);
  }
}

TEST_P(LossScaleTest, MixedFloat16TrainsAsOneProcessDoes) {
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained exact,
                       Train(*alone, kFloat32Policy, Scaled(Momentum())));
  const auto other = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*other, kMixedFloat16Policy, Scaled(Momentum())));
  ExpectNear(wanted, exact, 1e-2);
  EXPECT_NE(wanted.weights, exact.weights);
  const auto strategy = Make();
  ASSERT_OK_AND_ASSIGN(const Trained got, Train(*strategy, kMixedFloat16Policy,
                                                Scaled(Momentum())));
  ExpectNear(got, wanted, 5e-3);
}

// The checkpoint is saved one step before the scale doubles.
TEST_P(LossScaleTest, CheckpointsResumeInTheMiddleOfGrowth) {
  const Optimizer optimizer = Scaled(Momentum(), 3);
  const auto alone = Alone();
  const auto strategy = Make();
  for (const auto& [before, after] : {std::pair(alone.get(), strategy.get()),
                                      std::pair(strategy.get(), alone.get())}) {
    const std::string prefix =
        absl::StrCat(testing::TempDir(), "/loss_scale_", GetParam().name,
                     before == alone.get());
    Model model = Reader(kFloat32Policy);
    ASSERT_OK(Compile(model, *before, optimizer));
    ASSERT_OK(Fit(model));
    EXPECT_EQ(ScaleOf(*before), 256);
    ASSERT_OK(model.SaveCheckpoint(prefix));
    ASSERT_OK(model.TrainOnBatch(FirstBatch()).status());
    EXPECT_EQ(ScaleOf(*before), 512);
    ASSERT_OK_AND_ASSIGN(const Trained wanted, StateOf(model, *before));

    Model restored = Reader(kFloat32Policy);
    ASSERT_OK(Compile(restored, *after, optimizer));
    ASSERT_OK(restored.Build({{DType::kInt64, {kBatch, 2}}}));
    ASSERT_OK(restored.RestoreCheckpoint(prefix).status());
    EXPECT_EQ(ScaleOf(*after), 256);
    ASSERT_OK(restored.TrainOnBatch(FirstBatch()).status());
    ASSERT_OK_AND_ASSIGN(const Trained got, StateOf(restored, *after));
    ExpectNear(got, wanted, 2e-5);
  }
}

TEST(LossScale, ASkippedStepChangesNothingButTheScale) {
  const auto strategy = Alone();
  Model model = Reader(kFloat32Policy);
  ASSERT_OK(Compile(model, *strategy, Scaled(Momentum(), 100)));
  ASSERT_OK_AND_ASSIGN(auto batches, Sentences().MakeIterator({}, 0));
  Element batch;
  int64_t iterations = 0;
  for (int64_t step = 0; step < kBatchCount; ++step) {
    const double scale = step == 0 ? 1024 : ScaleOf(*strategy);
    const Weights before = step == 0 ? Weights() : WeightsOf(model);
    ASSERT_OK(batches->Next(&batch).status());
    ASSERT_OK(model.TrainOnBatch(batch).status());
    const bool is_finite = step != 1 && step != 4;
    if (is_finite) ++iterations;
    EXPECT_EQ(WeightsOf(model) == before, !is_finite);
    EXPECT_EQ(ScaleOf(*strategy), is_finite ? scale : scale / 2);
    EXPECT_THAT(model.iterations(), IsOkAndHolds(iterations));
  }
}

// Any number of replicas and workers gives the same bits.
TEST(LossScale, DeterministicReplicasAgreeInEveryBit) {
  SynchronousStrategy::Options options;
  options.intra_op_thread_count = 1;
  options.deterministic_micro_batches = 4;
  std::vector<Trained> all;
  for (const auto& [workers, replicas] :
       {std::pair(1, 1), std::pair(1, 2), std::pair(2, 1), std::pair(2, 2)}) {
    std::vector<Trained> of_workers(workers);
    RunLocalWorkers(workers, replicas, options,
                    [&](int worker, SynchronousStrategy& strategy) {
                      auto trained = Train(strategy, kMixedFloat16Policy,
                                           Scaled(Momentum()));
                      ASSERT_OK(trained.status());
                      of_workers[worker] = *std::move(trained);
                    });
    all.insert(all.end(), of_workers.begin(), of_workers.end());
  }
  for (const Trained& trained : all) ExpectNear(trained, all.front(), 0);
  EXPECT_EQ(all.front().scale, 1024);
}

TEST(LossScale, WorkersSkipTheSameSteps) {
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*alone, kFloat32Policy, Scaled(Momentum())));
  RunLocalWorkers(2, 1, {}, [&](int, SynchronousStrategy& strategy) {
    ASSERT_OK_AND_ASSIGN(const Trained got,
                         Train(strategy, kFloat32Policy, Scaled(Momentum())));
    ExpectNear(got, wanted, 2e-5);
  });
}

TEST(LossScale, ThePolicyOfTheModelScalesTheLoss) {
  const auto scale_of = [](const DTypePolicy& policy, CompileOptions options) {
    const auto strategy = Alone();
    const DTypePolicyScope scope(policy);
    Model model = Sequential({Input({2}), Dense(1)});
    options.loss = "mse";
    EXPECT_OK(model.Compile(*strategy, options));
    const absl::StatusOr<Tensor> scale =
        strategy->variables().Read("loss_scale");
    return scale.ok() ? scale->ElementAsDouble(0) : 0;
  };
  EXPECT_EQ(scale_of(kMixedFloat16Policy, {.optimizer = Adam()}), 32768);
  EXPECT_EQ(scale_of(kMixedBfloat16Policy, {.optimizer = Adam()}), 0);
  EXPECT_EQ(scale_of(kFloat32Policy, {.optimizer = Adam()}), 0);
  EXPECT_EQ(scale_of(kMixedFloat16Policy,
                     {.optimizer = Adam(), .auto_scale_loss = false}),
            0);
  EXPECT_EQ(scale_of(kMixedFloat16Policy, {.optimizer = Scaled(Adam())}), 1024);
  EXPECT_EQ(scale_of(kFloat32Policy, {.optimizer = Scaled(Adam())}), 1024);
  EXPECT_EQ(scale_of(kMixedFloat16Policy, {}), 0);
}

TEST(LossScale, IsOneForTheModel) {
  const auto strategy = Alone();
  Model model = Reader(kFloat32Policy);
  EXPECT_THAT(
      model.Compile(*strategy, {.optimizer = Adam(),
                                .layer_optimizers = {{"dense", Scaled(Sgd())}},
                                .loss = "mse"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("prefix \"dense\" has a loss scale of its own")));
  ASSERT_OK(model.Compile(*strategy, {.optimizer = Scaled(Adam(), 100),
                                      .layer_optimizers = {{"dense", Sgd()}},
                                      .loss = "mse"}));
  ASSERT_OK(Fit(model));
  EXPECT_EQ(ScaleOf(*strategy), 256);
  EXPECT_THAT(model.iterations(), IsOkAndHolds(5));
}

TEST(LossScale, EachModelHasOne) {
  const auto strategy = Alone();
  Model first = Sequential({Dense(1, {.name = "a"})});
  Model second = Sequential({Dense(1, {.name = "b"})});
  ASSERT_OK(Compile(first, *strategy, Scaled(Sgd())));
  ASSERT_OK(Compile(second, *strategy, Scaled(Sgd())));
  const Element finite = {Tensor::Full(DType::kFloat32, {2, 1}, 1),
                          Tensor::Full(DType::kFloat32, {2, 1}, 1)};
  Element infinite = finite;
  infinite[1] = Tensor::Full(DType::kFloat32, {2, 1},
                             std::numeric_limits<double>::infinity());
  ASSERT_OK(first.TrainOnBatch(finite).status());
  ASSERT_OK(second.TrainOnBatch(infinite).status());
  EXPECT_EQ(ScaleOf(*strategy, "loss_scale"), 1024);
  EXPECT_EQ(ScaleOf(*strategy, "loss_scale_1"), 512);
  EXPECT_THAT(first.iterations(), IsOkAndHolds(1));
  EXPECT_THAT(second.iterations(), IsOkAndHolds(0));
}

TEST(LossScale, CustomStepsHaveIt) {
  const auto strategy = Alone();
  Model model = Sequential({Dense(1)});
  ASSERT_OK(model.Compile(
      *strategy,
      {.optimizer = Scaled(Sgd({.learning_rate = 1.0}), 100),
       .train_step = [](const StepTrace& step) -> std::vector<StepMetric> {
         EXPECT_TRUE(step.loss_scale.has_value());
         // The gradient of the bias is 1, or infinite.
         const Value y = step.Call(step.element[0]);
         step.Minimize(Mean(y * step.element[1]));
         return {{"y", MeanStatistics(y)}};
       }}));
  const Tensor x = Tensor::Zeros(DType::kFloat32, {2, 1});
  for (const double factor :
       {1.0, std::numeric_limits<double>::infinity(), 1.0}) {
    ASSERT_OK(
        model.TrainOnBatch({x, Tensor::Full(DType::kFloat32, {2, 1}, factor)})
            .status());
  }
  EXPECT_EQ(ScaleOf(*strategy), 512);
  EXPECT_EQ(WeightsOf(model)[1], std::vector<float>{-2});
}

// Loading weights also keeps the scale if the file is of a model without a
// scale.
TEST(LossScale, WeightsAloneLeaveItAsItIs) {
  const std::string folder = testing::TempDir();
  const auto plain = Alone();
  Model pretrained = Reader(kFloat32Policy);
  ASSERT_OK(Compile(pretrained, *plain, Momentum()));
  ASSERT_OK(
      pretrained.Fit(Sentences(/*has_infinity=*/false), Quiet()).status());
  ASSERT_OK(pretrained.SaveCheckpoint(folder + "/plain"));
  const auto strategy = Alone();
  Model model = Reader(kFloat32Policy);
  ASSERT_OK(Compile(model, *strategy, Scaled(Momentum(), 100)));
  ASSERT_OK(Fit(model));
  ASSERT_OK(model.SaveWeights(folder + "/weights"));
  ASSERT_OK(model.LoadWeights(folder + "/plain"));
  EXPECT_EQ(WeightsOf(model), WeightsOf(pretrained));
  EXPECT_EQ(ScaleOf(*strategy), 256);
  ASSERT_OK(model.RestoreCheckpoint(folder + "/plain").status());
  EXPECT_EQ(ScaleOf(*strategy), 256);
  EXPECT_THAT(model.iterations(), IsOkAndHolds(kBatchCount));
  ASSERT_OK(pretrained.LoadWeights(folder + "/weights"));
}

TEST(LossScale, BackupsHaveIt) {
  const std::string folder = testing::TempDir() + "/loss_scale_backup";
  const Optimizer optimizer = Scaled(Momentum(), 3);
  const auto alone = Alone();
  ASSERT_OK_AND_ASSIGN(const Trained wanted,
                       Train(*alone, kFloat32Policy, optimizer));
  for (const bool is_interrupted : {true, false}) {
    const auto strategy = Alone();
    Model model = Reader(kFloat32Policy);
    ASSERT_OK(Compile(model, *strategy, optimizer));
    std::ostringstream output;
    BackupAndRestore backup({.backup_dir = folder,
                             .save_each_epoch = false,
                             .save_freq = 1,
                             .output = &output});
    LambdaCallback interrupt({.on_train_batch_end = [&](Model&, int64_t step,
                                                        const Logs&) {
      return is_interrupted && step == 6 ? absl::UnavailableError("interrupted")
                                         : absl::OkStatus();
    }});
    FitOptions options = Quiet(2);
    options.callbacks = {&backup, &interrupt};
    options.output = &output;
    const absl::Status status = model.Fit(Sentences(), options).status();
    if (is_interrupted) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("interrupted")));
      continue;
    }
    ASSERT_OK(status);
    ASSERT_OK_AND_ASSIGN(const Trained got, StateOf(model, *strategy));
    ExpectNear(got, wanted, 0);
  }
}

TEST(LossScale, FilesOfKerasHaveIt) {
  const std::string path = testing::TempDir() + "/loss_scale.keras";
  const auto strategy = Alone();
  const DTypePolicyScope scope(kMixedFloat16Policy);
  Model model = Sequential(
      {Input({2}), Dense(3, {.activation = Activation::kRelu}), Dense(1)});
  ASSERT_OK(Compile(model, *strategy, Scaled(Adam({.learning_rate = 0.1}), 3)));
  const auto batch = [](double y) {
    return Element{Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4}),
                   Tensor::Full(DType::kFloat32, {2, 1}, y)};
  };
  for (const double y :
       {1.0, std::numeric_limits<double>::infinity(), 2.0, 3.0}) {
    ASSERT_OK(model.TrainOnBatch(batch(y)).status());
  }
  ASSERT_OK(model.Save(path));
  const auto other = Alone();
  {
    const DTypePolicyScope of_loading(kFloat32Policy);
    ASSERT_OK_AND_ASSIGN(Model loaded, LoadModel(*other, path));
    EXPECT_EQ(ScaleOf(*other), 512);
    EXPECT_THAT(loaded.iterations(), IsOkAndHolds(3));
    // The next step doubles the scale.
    for (Model* each : {&model, &loaded}) {
      ASSERT_OK(each->TrainOnBatch(batch(1)).status());
    }
    EXPECT_EQ(ScaleOf(*other), 1024);
    EXPECT_EQ(ScaleOf(*strategy), 1024);
    EXPECT_EQ(WeightsOf(loaded), WeightsOf(model));
  }
}

}  // namespace
}  // namespace muster
