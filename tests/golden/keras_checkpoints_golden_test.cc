// Loads weights from files of tf.train.Checkpoint(model=...) for Keras models.
// make_checkpoints.py describes the files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::string Golden(const std::string& name) {
  return absl::StrCat("tests/golden/checkpoints/keras/", name);
}

Model FunctionalModel() {
  const LayerOutput images = Input({4, 4, 2});
  LayerOutput x = Conv2D(
      2, 3,
      {.padding = Padding::kSame, .use_bias = false, .name = "conv"})(images);
  x = BatchNormalization({.name = "norm"})(x);
  const LayerOutput y = DepthwiseConv2D(
      3, {.padding = Padding::kSame, .name = "depthwise"})(ReLU()(x));
  x = GlobalAveragePooling2D()(Add()({x, y}));
  return Model({images}, {Dense(3, {.name = "logits"})(x)});
}

Model SequentialModel() {
  return Sequential({Input({3}), Dense(4, {.name = "hidden"}),
                     BatchNormalization({.name = "norm"}), Dropout(0.1),
                     Dense(2, {.name = "logits"})});
}

// The layers are named like the attributes of the Keras model.
Model SubclassedModel() {
  return Sequential(
      {Input({1}, {.dtype = DType::kInt32}), Embedding(5, 3, {.name = "words"}),
       Dense(4, {.name = "first"}), Dense(2, {.name = "second"})});
}

void Compile(Model& model) {
  ASSERT_OK(model.Compile({.optimizer = Adam(), .loss = MeanSquaredError()}));
}

void ExpectCounting(const Model& model) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> values, model.GetWeights());
  for (size_t i = 0; i < values.size(); ++i) {
    double expected = static_cast<double>(i);
    for (const float element : values[i].flat<float>()) {
      ASSERT_EQ(element, expected) << model.weights()[i].name();
      expected += 1.0 / 8;
    }
  }
}

TEST(KerasCheckpointsGoldenTest, ReadsFunctionalModels) {
  Model model = FunctionalModel();
  Compile(model);
  ASSERT_OK(model.LoadWeights(Golden("functional")));
  ExpectCounting(model);
}

TEST(KerasCheckpointsGoldenTest, ReadsSequentialModels) {
  Model model = SequentialModel();
  Compile(model);
  ASSERT_OK(model.LoadWeights(Golden("sequential")));
  ExpectCounting(model);
}

TEST(KerasCheckpointsGoldenTest, ReadsModelsWithTheirOptimizer) {
  Model model = SequentialModel();
  Compile(model);
  ASSERT_OK(model.LoadWeights(Golden("trained")));
  ExpectCounting(model);
}

TEST(KerasCheckpointsGoldenTest, ReadsSubclassedModels) {
  Model model = SubclassedModel();
  Compile(model);
  ASSERT_OK(model.LoadWeights(Golden("subclassed")));
  ExpectCounting(model);
}

// Keras restores by object paths. Each path of the Keras checkpoint must lead
// to the same values in ours.
void ExpectSavesWhatKerasFinds(Model model, const std::string& name) {
  Compile(model);
  ASSERT_OK(model.LoadWeights(Golden(name)));
  const std::string prefix = absl::StrCat(::testing::TempDir(), "/", name);
  ASSERT_OK(model.SaveWeights(prefix));
  ASSERT_OK_AND_ASSIGN(const auto theirs,
                       TensorBundleReader::Open(Disk::Real(), Golden(name)));
  ASSERT_OK_AND_ASSIGN(const auto ours,
                       TensorBundleReader::Open(Disk::Real(), prefix));
  ASSERT_OK_AND_ASSIGN(const ObjectGraph their_graph,
                       ObjectGraph::ReadFrom(*theirs));
  ASSERT_OK_AND_ASSIGN(const ObjectGraph our_graph,
                       ObjectGraph::ReadFrom(*ours));
  size_t weight_count = 0;
  for (const ObjectGraph::Variable& variable : their_graph.Variables()) {
    if (variable.path.front() != "model") continue;
    ++weight_count;
    ASSERT_OK_AND_ASSIGN(const std::string key,
                         our_graph.FindVariable(variable.path));
    ASSERT_OK_AND_ASSIGN(const Tensor saved, ours->Read(key));
    ASSERT_OK_AND_ASSIGN(const Tensor expected, theirs->Read(variable.key));
    EXPECT_TRUE(BitwiseEqual(saved, expected)) << variable.full_name;
  }
  EXPECT_EQ(weight_count, model.weights().size());
}

TEST(KerasCheckpointsGoldenTest, SavesTheObjectPathsOfKeras) {
  ExpectSavesWhatKerasFinds(FunctionalModel(), "functional");
  ExpectSavesWhatKerasFinds(SequentialModel(), "sequential");
  ExpectSavesWhatKerasFinds(SubclassedModel(), "subclassed");
}

// Checkpoints of training, as in TRAINED of make_checkpoints.py.

constexpr int kStepsAfter = 3;

std::string Training(const std::string& name) {
  return Golden(absl::StrCat("training/", name));
}

struct TrainedCase {
  std::string name;
  Model (*make)();
  Optimizer optimizer;
  Shape input;
  Shape output;
};

Model SmallModel() {
  return Sequential(
      {Input({3}),
       Dense(4, {.activation = Activation::kRelu, .name = "hidden"}),
       BatchNormalization({.name = "norm"}),
       Dense(4, {.activation = Activation::kRelu, .name = "between"}),
       Dense(2, {.name = "logits"})});
}

Model SmallSubclassedModel() {
  return Sequential(
      {Input({3}), Dense(4, {.activation = Activation::kRelu, .name = "first"}),
       Dense(2, {.name = "second"})});
}

Model SmallMobileNetV2() {
  return Model(applications::MobileNetV2(
      {.input_shape = {32, 32, 3},
       .alpha = 0.01,
       .classes = 2,
       .classifier_activation = Activation::kLinear}));
}

std::vector<TrainedCase> TrainedCases() {
  const LearningRateSchedule schedule = ExponentialDecay(
      {.initial_learning_rate = 0.02, .decay_steps = 1, .decay_rate = 0.5});
  const std::vector<std::pair<std::string, Optimizer>> optimizers = {
      {"adam", Adam({.learning_rate = 0.01})},
      {"amsgrad", Adam({.learning_rate = 0.01, .amsgrad = true})},
      {"adamw", AdamW({.learning_rate = 0.01})},
      {"schedule", Adam({.learning_rate = schedule})},
      {"momentum", Sgd({.learning_rate = 0.05, .momentum = 0.75})},
      {"sgd", Sgd({.learning_rate = 0.05})},
      {"rmsprop",
       RmsProp({.learning_rate = 0.01, .momentum = 0.5, .centered = true})},
      {"adagrad", Adagrad({.learning_rate = 0.01})},
      {"adadelta", Adadelta({.learning_rate = 1.0})},
      {"adamax", Adamax({.learning_rate = 0.01})},
      {"nadam", Nadam({.learning_rate = 0.01})},
      {"ftrl", Ftrl({.learning_rate = 0.05})},
      {"schedule_free", ScheduleFreeAdamW({.learning_rate = 0.01})},
      {"lion", Lion({.learning_rate = 0.01})},
      {"loss_scale",
       LossScaleOptimizer(Sgd({.learning_rate = 0.05, .momentum = 0.75}),
                          {.initial_scale = 64, .dynamic_growth_steps = 3})},
  };
  std::vector<TrainedCase> cases;
  for (const auto& [name, optimizer] : optimizers) {
    cases.push_back({absl::StrCat("small_", name), SmallModel, optimizer,
                     Shape({4, 3}), Shape({4, 2})});
  }
  const Optimizer adam = optimizers[0].second;
  const Optimizer momentum = optimizers[4].second;
  cases.push_back({"functional", FunctionalModel, momentum, Shape({4, 4, 4, 2}),
                   Shape({4, 3})});
  cases.push_back(
      {"subclassed", SmallSubclassedModel, adam, Shape({4, 3}), Shape({4, 2})});
  cases.push_back({"compiled", SmallModel, adam, Shape({4, 3}), Shape({4, 2})});
  cases.push_back({"mobilenet_v2", SmallMobileNetV2, momentum,
                   Shape({4, 32, 32, 3}), Shape({4, 2})});
  return cases;
}

Model Compiled(const TrainedCase& trained) {
  Model model = trained.make();
  EXPECT_OK(model.Compile(
      {.optimizer = trained.optimizer, .loss = MeanSquaredError()}));
  return model;
}

Tensor Counting(const Shape& shape, int64_t period) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.mutable_flat<float>()[i] =
        static_cast<float>(i % period - period / 2) / 4;
  }
  return tensor;
}

void TakeSteps(Model& model, const TrainedCase& trained, int count) {
  const Element batch(
      {Counting(trained.input, 7), Counting(trained.output, 5)});
  for (int i = 0; i < count; ++i) {
    ASSERT_OK(model.TrainOnBatch(batch).status());
  }
}

TEST(KerasCheckpointsGoldenTest, GoesOnTrainingWhereKerasStopped) {
  for (const TrainedCase& trained : TrainedCases()) {
    if (trained.name == "mobilenet_v2") continue;
    Model model = Compiled(trained);
    ASSERT_OK(model.RestoreCheckpoint(Training(trained.name)).status());
    TakeSteps(model, trained, kStepsAfter);
    ASSERT_OK_AND_ASSIGN(const auto later,
                         TensorBundleReader::Open(
                             Disk::Real(), Training(trained.name + "_later")));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_OK_AND_ASSIGN(const Tensor expected, later->Read(absl::StrCat(i)));
      EXPECT_THAT(weights[i].flat<float>(),
                  Pointwise(FloatNear(1e-5), expected.flat<float>()))
          << trained.name << ", " << model.weights()[i].name();
    }
  }
}

// For every object of Keras, of the model and of the optimizer, the checkpoint
// that Muster saves has the same value.
void ExpectSavesObjectsOf(const TrainedCase& trained) {
  Model model = Compiled(trained);
  ASSERT_OK(model.RestoreCheckpoint(Training(trained.name)).status());
  const std::string prefix =
      absl::StrCat(::testing::TempDir(), "/", trained.name);
  ASSERT_OK(model.SaveCheckpoint(prefix));
  ASSERT_OK_AND_ASSIGN(
      const auto theirs,
      TensorBundleReader::Open(Disk::Real(), Training(trained.name)));
  ASSERT_OK_AND_ASSIGN(const auto ours,
                       TensorBundleReader::Open(Disk::Real(), prefix));
  ASSERT_OK_AND_ASSIGN(const ObjectGraph their_graph,
                       ObjectGraph::ReadFrom(*theirs));
  ASSERT_OK_AND_ASSIGN(const ObjectGraph our_graph,
                       ObjectGraph::ReadFrom(*ours));
  for (const ObjectGraph::Variable& variable : their_graph.Variables()) {
    ASSERT_OK_AND_ASSIGN(const std::string key,
                         our_graph.FindVariable(variable.path));
    ASSERT_OK_AND_ASSIGN(const Tensor saved, ours->Read(key));
    ASSERT_OK_AND_ASSIGN(const Tensor expected, theirs->Read(variable.key));
    const std::string where =
        absl::StrCat(trained.name, ", ", absl::StrJoin(variable.path, "/"),
                     ", ", variable.full_name);
    if (variable.path.back() == "_u_product") {
      // Keras computes this value in another precision.
      EXPECT_FLOAT_EQ(saved.scalar<float>(), expected.scalar<float>()) << where;
      continue;
    }
    EXPECT_TRUE(BitwiseEqual(saved, expected)) << where;
  }
}

TEST(KerasCheckpointsGoldenTest, SavesTheOptimizerAsKerasFindsIt) {
  for (const TrainedCase& trained : TrainedCases()) {
    ExpectSavesObjectsOf(trained);
  }
}

TEST(KerasCheckpointsGoldenTest, KerasRestoresWhatMusterSaves) {
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras";
  }
  const std::string folder = ::testing::TempDir();
  for (const TrainedCase& trained : TrainedCases()) {
    Model model = Compiled(trained);
    ASSERT_OK(model.RestoreCheckpoint(Training(trained.name)).status());
    const std::string prefix = absl::StrCat(folder, "/", trained.name);
    ASSERT_OK(model.SaveCheckpoint(prefix));
    TakeSteps(model, trained, 1);
    ASSERT_OK(model.SaveCheckpoint(prefix + "_next"));
  }
  const std::string command = absl::StrCat(
      python, " -B tests/golden/read_keras_checkpoints.py ", folder);
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(KerasCheckpointsGoldenTest, TakesTheLearningRateOfKeras) {
  Model model = SmallModel();
  ASSERT_OK(model.Compile(
      {.optimizer = Adam({.learning_rate = 0.5}), .loss = MeanSquaredError()}));
  ASSERT_OK(model.RestoreCheckpoint(Training("small_adam")).status());
  ASSERT_OK_AND_ASSIGN(const double learning_rate, model.learning_rate());
  EXPECT_FLOAT_EQ(static_cast<float>(learning_rate), 0.01f);
}

TEST(KerasCheckpointsGoldenTest, RejectsTheStateOfAnotherOptimizer) {
  Model model = SmallModel();
  Compile(model);
  EXPECT_THAT(model.RestoreCheckpoint(Training("small_momentum")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("has no _momentums of hidden/kernel"),
                             HasSubstr("LoadWeights()"))));
  ASSERT_OK(model.LoadWeights(Training("small_momentum")));
}

// Keras has only one optimizer for all weights.
TEST(KerasCheckpointsGoldenTest, RejectsItsOptimizerBesideLayerOptimizers) {
  Model model = SmallModel();
  ASSERT_OK(model.Compile({.optimizer = Adam(),
                           .layer_optimizers = {{"hidden", Adam()}},
                           .loss = MeanSquaredError()}));
  EXPECT_THAT(model.RestoreCheckpoint(Training("small_adam")).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("the model has layer_optimizers"),
                             HasSubstr("LoadWeights()"))));
  ASSERT_OK(model.LoadWeights(Training("small_adam")));
}

TEST(KerasCheckpointsGoldenTest, RejectsACheckpointOfAnotherModel) {
  Model model = FunctionalModel();
  Compile(model);
  EXPECT_THAT(model.LoadWeights(Golden("sequential")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("it lacks \"conv/kernel\""),
                             HasSubstr("It holds 8 variables: sequential"))));
}

TEST(KerasCheckpointsGoldenTest, ReadsFilesInOtherKerasFormats) {
  for (const char* const name : {"whole.keras", "whole.weights.h5"}) {
    Model model = SequentialModel();
    Compile(model);
    ASSERT_OK(model.LoadWeights(Golden(name)));
    ExpectCounting(model);
    EXPECT_THAT(model.RestoreCheckpoint(Golden(name)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("prefix of a TensorFlow checkpoint")));
  }
}

}  // namespace
}  // namespace muster
