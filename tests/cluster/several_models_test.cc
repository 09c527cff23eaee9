// Several models, and several optimizers of one model, on parameter servers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Batches of 8 from 64 examples, each with 3 features and one of 3 classes.
Dataset Data() {
  Tensor x(DType::kFloat32, {64, 3});
  Tensor y(DType::kInt64, {64});
  RandomStream random(1);
  for (float& feature : x.mutable_flat<float>()) {
    feature = static_cast<float>(random.Below(2001)) / 1000 - 1;
  }
  for (int64_t& label : y.mutable_flat<int64_t>()) {
    label = static_cast<int64_t>(random.Below(3));
  }
  return Dataset::FromTensorSlices({x, y}).Batch(8);
}

absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Connect(
    TestCluster& cluster) {
  ClusterConnection::Options options;
  options.attempts_per_closure_max = 1000;
  return cluster.Connect(options);
}

// Returns a model of one layer, with weights that depend on its name.
Model Line(const std::string& name) {
  return Sequential({Dense(3, {.name = name})});
}

absl::StatusOr<std::vector<Tensor>> TrainLine(Model& model) {
  RETURN_IF_ERROR(model.Fit(Data(), {.verbose = Verbosity::kSilent}).status());
  ASSIGN_OR_RETURN(std::vector<Tensor> weights, model.GetWeights());
  for (Tensor& weight : weights) weight = weight.Clone();
  return weights;
}

CompileOptions LineOptions(const Optimizer& optimizer) {
  return {.optimizer = optimizer,
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .seed = 3};
}

// Trains a model in one process.
absl::StatusOr<std::vector<Tensor>> TrainLineAlone(const std::string& name,
                                                   const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const auto strategy,
                   DefaultStrategy::Create({.thread_count = 1}));
  Model model = Line(name);
  RETURN_IF_ERROR(model.Compile(*strategy, LineOptions(optimizer)));
  return TrainLine(model);
}

void ExpectNear(const std::vector<Tensor>& got,
                const std::vector<Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_THAT(got[i].flat<float>(),
                Pointwise(FloatNear(1e-5), wanted[i].flat<float>()));
  }
}

TEST(SeveralModelsOnServers, ModelsThatCarryStatesAreRefused) {
  TestCluster cluster(1, 1);
  ASSERT_OK_AND_ASSIGN(const auto strategy, Connect(cluster));
  Model model =
      Sequential({Input({3, 2}, {.batch_size = 8}),
                  GRU(2, {.sequence = {.stateful = true}, .name = "memory"})});
  EXPECT_THAT(
      model.Compile(*strategy, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("memory/rnn_state is carried from batch to batch")));
}

TEST(SeveralModelsOnServers, EachModelTrainsWithItsOwnOptimizer) {
  const Optimizer plain = Sgd({.learning_rate = 0.1});
  const Optimizer other = Adam({.learning_rate = 0.05});
  TestCluster cluster(1, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, Connect(cluster));
  Model first = Line("first");
  Model second = Line("second");
  ASSERT_OK(first.Compile(*strategy, LineOptions(plain)));
  ASSERT_OK(second.Compile(*strategy, LineOptions(other)));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_first, TrainLine(first));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_second, TrainLine(second));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> first_alone,
                       TrainLineAlone("first", plain));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> second_alone,
                       TrainLineAlone("second", other));
  ExpectNear(of_first, first_alone);
  ExpectNear(of_second, second_alone);

  // The replacement of a server has both optimizers.
  for (const int server : {0, 1}) {
    cluster.KillServer(server);
    cluster.StartServer(server);
  }
  ASSERT_OK(TrainLine(first));
  ASSERT_OK(TrainLine(second));
  ASSERT_OK_AND_ASSIGN(const auto snapshot,
                       strategy->variables().TakeSnapshot());
  for (const VariableSnapshot::Entry& entry : snapshot->entries()) {
    EXPECT_EQ(entry.slots.size(), entry.variable.find("first") == 0 ? 0 : 2)
        << entry.variable;
    EXPECT_GT(entry.update_count, 0) << entry.variable;
  }
}

CompileOptions BackboneAndHeadOptions() {
  CompileOptions options =
      LineOptions(Adam({.learning_rate = 0.05}, {.global_clipnorm = 0.05}));
  options.layer_optimizers = {
      {"backbone", Sgd({.learning_rate = 0.1}, {.global_clipnorm = 0.02})}};
  return options;
}

Model BackboneAndHead() {
  return Sequential(
      {Dense(4, {.name = "backbone"}), Dense(3, {.name = "head"})});
}

TEST(SeveralModelsOnServers, EachLayerTrainsWithItsOwnOptimizer) {
  ASSERT_OK_AND_ASSIGN(const auto alone,
                       DefaultStrategy::Create({.thread_count = 1}));
  Model expected = BackboneAndHead();
  ASSERT_OK(expected.Compile(*alone, BackboneAndHeadOptions()));
  TestCluster cluster(1, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, Connect(cluster));
  Model model = BackboneAndHead();
  ASSERT_OK(model.Compile(*strategy, BackboneAndHeadOptions()));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, TrainLine(expected));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, TrainLine(model));
  ExpectNear(got, wanted);

  // A checkpoint has the state of both optimizers.
  const std::string prefix = testing::TempDir() + "/layer_optimizers/ckpt-1";
  ASSERT_OK(model.SaveCheckpoint(prefix));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> trained_on, TrainLine(model));
  TestCluster other_cluster(1, 1);
  ASSERT_OK_AND_ASSIGN(const auto other, Connect(other_cluster));
  Model restored = BackboneAndHead();
  ASSERT_OK(restored.Compile(*other, BackboneAndHeadOptions()));
  ASSERT_OK(restored.Build(TensorType{DType::kFloat32, {8, 3}}));
  ASSERT_OK(restored.RestoreCheckpoint(prefix).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> after, TrainLine(restored));
  ExpectNear(after, trained_on);

  // The replacement of a server has both optimizers.
  for (const int server : {0, 1}) {
    cluster.KillServer(server);
    cluster.StartServer(server);
  }
  ASSERT_OK(TrainLine(model).status());
  ASSERT_OK_AND_ASSIGN(const auto snapshot,
                       strategy->variables().TakeSnapshot());
  for (const VariableSnapshot::Entry& entry : snapshot->entries()) {
    EXPECT_EQ(entry.slots.size(), entry.variable.find("head") == 0 ? 2 : 0)
        << entry.variable;
    EXPECT_GT(entry.update_count, 0) << entry.variable;
  }
}

TEST(SeveralModelsOnServers, ANewModelStartsWithInitialWeights) {
  TestCluster cluster(1, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, Connect(cluster));
  std::optional<Model> first = Line("line");
  ASSERT_OK(first->Compile(*strategy, LineOptions(Adam())));
  ASSERT_OK(TrainLine(*first));
  Model second = Line("line");
  ASSERT_OK(second.Compile(*strategy, LineOptions(Sgd())));
  EXPECT_THAT(
      TrainLine(second).status(),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("\"line/kernel\"")));
  first.reset();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, TrainLine(second));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> alone,
                       TrainLineAlone("line", Sgd()));
  ExpectNear(weights, alone);
}

}  // namespace
}  // namespace muster
