// Models in the HDF5 format of Keras 2.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/recurrent/bidirectional.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/golden/legacy_files/";

Element InputsOf(const GoldenCase& golden) {
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : golden.inputs) inputs.push_back(tensor);
  return Element(inputs);
}

void ExpectPredictions(Model& model, const GoldenCase& golden) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> predictions,
                       model.PredictOnBatch(InputsOf(golden)));
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_EQ(DescribeDifference(predictions[0],
                               golden.outputs.at("prediction_0"), 1e-5),
            "");
}

class LegacyFilesTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(LegacyFilesTest, ModelsPredictWhatKerasPredicts) {
  const GoldenCase& golden = GetParam();
  ASSERT_OK_AND_ASSIGN(Model model,
                       LoadModel(absl::StrCat(kFolder, golden.name, ".h5")));
  ExpectPredictions(model, golden);
}

TEST_P(LegacyFilesTest, WeightsAreLoadedIntoAModel) {
  const GoldenCase& golden = GetParam();
  ASSERT_OK_AND_ASSIGN(Model model,
                       LoadModel(absl::StrCat(kFolder, golden.name, ".h5")));
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> weights, model.GetWeights());
  for (Tensor& weight : weights) {
    weight = Tensor::Zeros(weight.dtype(), weight.shape());
  }
  ASSERT_OK(model.SetWeights(weights));
  ASSERT_OK(
      model.LoadWeights(absl::StrCat(kFolder, golden.name, "_weights.h5")));
  ExpectPredictions(model, golden);
}

INSTANTIATE_TEST_SUITE_P(
    Golden, LegacyFilesTest,
    ::testing::ValuesIn(ReadGoldenCases("legacy_files.json")),
    [](const auto& test) { return test.param.name; });

// Returns the model "sequence" of cases/legacy_files.py with another head.
Model WithHead(int64_t class_count, const std::string& name) {
  const SequenceOptions all = {.return_sequences = true};
  return Sequential(
      {Input({5}, {.dtype = DType::kInt32}),
       Embedding(9, 4, {.mask_zero = true, .name = "embedding"}),
       LSTM(3, {.sequence = all, .name = "lstm"}),
       Bidirectional(GRU(2, {.sequence = all}), {.name = "bidirectional"}),
       SimpleRNN(2, {.name = "simple_rnn"}),
       Dense(class_count, {.name = name})});
}

constexpr char kSequence[] = "tests/golden/legacy_files/sequence_2_weights.h5";

TEST(LegacyFilesGoldenTest, OtherLayersAreRefused) {
  Model model = WithHead(7, "dense");
  ASSERT_OK(model.Compile({}));
  EXPECT_THAT(model.LoadWeights(kSequence),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dense/kernel:0 is float32[2,2]; dense/kernel "
                                 "of this model is float32[2,7]")));
  Model shorter = Sequential({Input({2}), Dense(2)});
  ASSERT_OK(shorter.Compile({}));
  EXPECT_THAT(shorter.LoadWeights(kSequence),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 5 layers with weights; this model has "
                                 "1. by_name")));
  EXPECT_THAT(LoadModel(kSequence).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has weights only")));
}

// Expects that all layers except the head have the weights of the file.
void ExpectBackboneOfFile(Model& model, const std::vector<Tensor>& before) {
  ASSERT_OK_AND_ASSIGN(Model saved,
                       LoadModel(absl::StrCat(kFolder, "sequence_2.h5")));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> of_file, saved.GetWeights());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  ASSERT_EQ(weights.size(), of_file.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool is_head = i + 2 >= weights.size();
    EXPECT_TRUE(BitwiseEqual(weights[i], is_head ? before[i] : of_file[i]))
        << model.weights()[i].name();
  }
}

TEST(LegacyFilesGoldenTest, MismatchesAreSkipped) {
  Model model = WithHead(7, "dense");
  ASSERT_OK(model.Compile({}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> before, model.GetWeights());
  ASSERT_OK(model.LoadWeights(kSequence, {.skip_mismatch = true}));
  ExpectBackboneOfFile(model, before);
}

TEST(LegacyFilesGoldenTest, LayersAreFoundByName) {
  Model model = WithHead(7, "head");
  ASSERT_OK(model.Compile({}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> before, model.GetWeights());
  ASSERT_OK(model.LoadWeights(kSequence, {.by_name = true}));
  ExpectBackboneOfFile(model, before);
}

// The same holds for files of Keras 3.
TEST(LegacyFilesGoldenTest, MismatchesOfKeras3AreSkipped) {
  const std::string path = testing::TempDir() + "narrow.weights.h5";
  Model narrow = Sequential({Input({4}), Dense(5), Dense(3)});
  ASSERT_OK(narrow.Compile({.seed = 1}));
  ASSERT_OK(narrow.SaveWeights(path));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> saved, narrow.GetWeights());
  Model wide = Sequential({Input({4}), Dense(5), Dense(7)});
  ASSERT_OK(wide.Compile({.seed = 2}));
  EXPECT_THAT(wide.LoadWeights(path),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(wide.LoadWeights(path, {.by_name = true}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("by_name is for files of Keras 2")));
  ASSERT_OK(wide.LoadWeights(path, {.skip_mismatch = true}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> loaded, wide.GetWeights());
  EXPECT_TRUE(BitwiseEqual(loaded[0], saved[0]));
  EXPECT_EQ(loaded[2].shape(), (Shape{5, 7}));
}

}  // namespace
}  // namespace muster
