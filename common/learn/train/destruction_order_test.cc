// Tests objects that use each other and are destroyed in various orders.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/replica/distributed_variable.h"
#include "common/learn/strategy/replica/replica_operations.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/evaluator/checkpoint_evaluator.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_strategies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string TemporaryFolder() { return std::getenv("TEST_TMPDIR"); }

Element Examples() {
  return {Tensor::Full(DType::kFloat32, {4, 2}, 1),
          Tensor::Zeros(DType::kFloat32, {4, 1})};
}

LayerPtr Layers() { return Sequential({Input({2}), Dense(1)}); }

const EvaluateOptions kQuiet = {.verbose = Verbosity::kSilent};

CompileOptions Options() {
  return {.optimizer = Adam(), .loss = MeanSquaredError(), .seed = 1};
}

absl::Status Train(Model& model) {
  RETURN_IF_ERROR(
      model.Fit(Examples(), {.batch_size = 2, .verbose = Verbosity::kSilent})
          .status());
  // These calls keep the steps that they compile.
  RETURN_IF_ERROR(model.TrainOnBatch(Examples()).status());
  RETURN_IF_ERROR(model.TestOnBatch(Examples()).status());
  return model.PredictOnBatch({Examples()[0]}).status();
}

// A program's objects, which it may destroy in any order.
class Objects {
 public:
  static constexpr int kCount = 5;

  static absl::StatusOr<std::unique_ptr<Objects>> Make(
      absl::StatusOr<std::unique_ptr<Strategy>> strategy) {
    auto made = std::make_unique<Objects>();
    ASSIGN_OR_RETURN(made->strategy_, std::move(strategy));
    Strategy& used = *made->strategy_;
    made->strategy_name_ = absl::StrCat("strategy \"", used.name(), "\"");
    made->model_.emplace(Layers());
    RETURN_IF_ERROR(made->model_->Compile(used, Options()));
    RETURN_IF_ERROR(Train(*made->model_));
    ASSIGN_OR_RETURN(
        made->variable_,
        CreateVariable(used, "counter", {},
                       {.aggregation = VariableAggregation::kMean}));
    ASSIGN_OR_RETURN(
        const DistributedDataset data,
        dynamic_cast<ReplicaOperations&>(used).DistributeDataset(
            Dataset::FromTensorSlices(Examples()).Batch(4).Repeat(100)));
    ASSIGN_OR_RETURN(made->iterator_, data.MakeIterator());
    ASSIGN_OR_RETURN(
        made->evaluator_,
        CheckpointEvaluator::Create(
            &*made->model_, Dataset::FromTensorSlices(Examples()).Batch(2),
            {.checkpoint_dir = TemporaryFolder() + "/checkpoints",
             .log_dir = TemporaryFolder() + "/evaluator"}));
    return made;
  }

  void Destroy(int object) {
    switch (object) {
      case 0:
        strategy_ = nullptr;
        break;
      case 1:
        model_.reset();
        break;
      case 2:
        variable_.reset();
        break;
      case 3:
        iterator_ = nullptr;
        break;
      default:
        evaluator_ = nullptr;
    }
  }

  // Uses the remaining objects.
  void Use() {
    if (model_.has_value()) UseModel();
    if (variable_.has_value()) {
      ExpectUse(variable_->Read().status(), "variable \"counter\"");
      ExpectUse(variable_->Assign(Tensor::Scalar(1.0f)),
                "variable \"counter\"");
      ExpectUse(variable_->AssignAdd(Tensor::Scalar(1.0f)),
                "variable \"counter\"");
    }
    if (iterator_ != nullptr) {
      std::vector<ReplicaBatch> batch;
      EXPECT_OK(iterator_->Next(&batch).status());
    }
    if (evaluator_ == nullptr) return;
    if (model_.has_value()) {
      EXPECT_OK(evaluator_->ScoreNew().status());
      return;
    }
    EXPECT_THAT(evaluator_->ScoreNew(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("model \"sequential\" has been"),
                               HasSubstr("the evaluator of "))));
  }

 private:
  void UseModel() {
    Model& model = *model_;
    EXPECT_FALSE(model.Summary().empty());
    EXPECT_EQ(model.weights().size(), 2);
    EXPECT_EQ(model.strategy(), strategy_.get());
    const Element x = {Examples()[0]};
    const std::string name = "model \"sequential\"";
    for (const absl::Status& status :
         {model.Predict(x).status(),
          model.Evaluate(Examples(), kQuiet).status(), Train(model),
          model.GetWeights().status(), model.iterations().status(),
          model.learning_rate().status(), model.SetLearningRate(0.1),
          model.ResetStates(),
          model.Build(TensorType{DType::kFloat32, {Shape::kUnknown, 2}}),
          model.Save(TemporaryFolder() + "/m.keras"),
          model.SaveCheckpoint(TemporaryFolder() + "/ckpt"),
          model.LoadWeights(TemporaryFolder() + "/ckpt"),
          model.RestoreCheckpoint(TemporaryFolder() + "/ckpt").status()}) {
      ExpectUse(status, name);
    }
    if (strategy_ != nullptr) return;
    ASSERT_OK_AND_ASSIGN(const auto other, DefaultStrategy::Create());
    ExpectUse(model.Compile(*other, Options()), name);
  }

  // Checks the result of a call that needs the strategy. `user` is the object
  // that needs it.
  void ExpectUse(const absl::Status& status, const std::string& user) {
    if (strategy_ != nullptr) {
      EXPECT_OK(status);
      return;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr(strategy_name_ + " has been"),
                                       HasSubstr(user))));
  }

  std::string strategy_name_;
  std::unique_ptr<Strategy> strategy_;
  std::optional<Model> model_;
  std::optional<DistributedVariable> variable_;
  std::unique_ptr<DistributedIterator> iterator_;
  std::unique_ptr<CheckpointEvaluator> evaluator_;
};

std::vector<LocalStrategy> AllLocalStrategies() {
  std::vector<LocalStrategy> strategies = LocalStrategies();
  strategies.push_back(
      {"Default", [] { return DefaultStrategy::Create({.thread_count = 1}); }});
  return strategies;
}

class DestructionOrderTest : public ::testing::TestWithParam<LocalStrategy> {};

// In these orders and their reverses, each object is destroyed first once, and
// each pair of objects is destroyed in both orders.
TEST_P(DestructionOrderTest, RemainingObjectsWorkOrNameTheDestroyedOne) {
  for (int first = 0; first < Objects::kCount; ++first) {
    for (const int step : {1, Objects::kCount - 1}) {
      std::vector<int> order;
      for (int i = 0; i < Objects::kCount; ++i) {
        order.push_back((first + i * step) % Objects::kCount);
      }
      ASSERT_OK_AND_ASSIGN(const auto objects,
                           Objects::Make(GetParam().make()));
      for (const int object : order) {
        objects->Use();
        objects->Destroy(object);
      }
      ASSERT_FALSE(HasFailure()) << first << ", by steps of " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, DestructionOrderTest,
                         ::testing::ValuesIn(AllLocalStrategies()),
                         [](const auto& info) { return info.param.name; });

absl::StatusOr<Model> TrainedModel() {
  ASSIGN_OR_RETURN(std::unique_ptr<DefaultStrategy> strategy,
                   DefaultStrategy::Create());
  Model model = Layers();
  RETURN_IF_ERROR(model.Compile(std::move(strategy), Options()));
  RETURN_IF_ERROR(Train(model));
  return model;
}

TEST(StrategyOfModelTest, AModelKeepsAStrategyThatItIsGiven) {
  ASSERT_OK_AND_ASSIGN(Model model, TrainedModel());
  EXPECT_OK(model.Predict({Examples()[0]}).status());
  EXPECT_OK(Train(model));
  const std::string path = TemporaryFolder() + "/kept.keras";
  ASSERT_OK(model.Save(path));
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<Strategy> strategy,
                       DefaultStrategy::Create());
  ASSERT_OK_AND_ASSIGN(Model loaded, LoadModel(std::move(strategy), path));
  EXPECT_OK(loaded.Predict({Examples()[0]}).status());
  EXPECT_THAT(model.Compile(std::shared_ptr<Strategy>(), Options()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("null")));
}

// A new strategy may have the address of the destroyed one.
TEST(StrategyOfModelTest, AnotherStrategyIsNotTakenForTheDestroyedOne) {
  Model model = Layers();
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto strategy, DefaultStrategy::Create());
    const absl::Status status = model.Compile(*strategy, Options());
    if (i == 0) {
      EXPECT_OK(status);
      continue;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("strategy \"default\" has been")));
  }
}

TEST(StrategyOfModelTest, AnUnbuiltModelTakesAnotherStrategy) {
  Model model = Sequential({Dense(1)});
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto strategy, DefaultStrategy::Create());
    EXPECT_OK(model.Compile(*strategy, Options()));
  }
  EXPECT_THAT(model.Predict({Examples()[0]}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("strategy \"default\" has been destroyed")));
}

TEST(StrategyOfModelTest, AScopeNamesItsDestroyedStrategy) {
  ASSERT_OK_AND_ASSIGN(auto strategy, DefaultStrategy::Create());
  ASSERT_OK_AND_ASSIGN(const auto other, DefaultStrategy::Create());
  {
    ASSERT_OK_AND_ASSIGN(const StrategyScope scope,
                         StrategyScope::Enter(*strategy));
    strategy = nullptr;
    Model model = Layers();
    EXPECT_THAT(model.Compile(Options()),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("strategy \"default\" has been"),
                               HasSubstr("model \"sequential\""))));
    EXPECT_THAT(CreateVariable(*other, "v", {}).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("variable \"v\" needs it")));
    EXPECT_THAT(StrategyScope::Enter(*other).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("has been destroyed")));
  }
  Model model = Layers();
  EXPECT_OK(model.Compile(Options()));
}

TEST(StrategyOfModelTest, NoVariableIsAnError) {
  const DistributedVariable none;
  EXPECT_THAT(none.Read(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                    HasSubstr("is none")));
}

}  // namespace
}  // namespace muster
