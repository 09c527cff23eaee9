// Loads weights from files of tf.train.Checkpoint(model=...) for Keras models.
// make_checkpoints.py describes the files.
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/learn/nn/batch_normalization.h"
#include "common/learn/nn/convolution.h"
#include "common/learn/nn/dense.h"
#include "common/learn/nn/depthwise_convolution.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/embedding.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/merge.h"
#include "common/learn/nn/pooling.h"
#include "common/learn/nn/relu.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
