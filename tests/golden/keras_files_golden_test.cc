#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int kStepCount = 3;

std::string SavedByKeras(const GoldenCase& golden) {
  return absl::StrCat("tests/golden/keras_files/", golden.name, ".keras");
}

// Returns the tensors whose names begin with `prefix`, in the order of their
// numbers.
std::vector<Tensor> Numbered(const std::map<std::string, Tensor>& tensors,
                             const std::string& prefix) {
  std::vector<Tensor> found;
  while (true) {
    const auto next = tensors.find(absl::StrCat(prefix, found.size()));
    if (next == tensors.end()) return found;
    found.push_back(next->second);
  }
}

Element BatchOf(const GoldenCase& golden) {
  std::vector<Tensor> components = Numbered(golden.inputs, "x_");
  for (const Tensor& y : Numbered(golden.inputs, "y_")) components.push_back(y);
  return Element(components);
}

void TakeSteps(Model& model, const GoldenCase& golden, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_OK(model.TrainOnBatch(BatchOf(golden)).status());
  }
}

// Compares the weights with those that Keras has after its steps.
void ExpectKerasWeights(Model& model, const GoldenCase& golden) {
  const std::vector<Tensor> expected = Numbered(golden.outputs, "weight_");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(DescribeDifference(weights[i], expected[i], 1e-5), "")
        << model.weights()[i].name();
  }
}

std::vector<GoldenCase> AllCases() {
  std::vector<GoldenCase> cases = ReadGoldenCases("keras_files.json");
  for (const GoldenCase& one : ReadGoldenCases("keras_string_files.json")) {
    cases.push_back(one);
  }
  return cases;
}

class KerasFilesTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(KerasFilesTest, PredictsWhatKerasPredicts) {
  const GoldenCase& golden = GetParam();
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
  const std::vector<Tensor> expected = Numbered(golden.outputs, "prediction_");
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> predictions,
      model.PredictOnBatch(Element(Numbered(golden.inputs, "x_"))));
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(DescribeDifference(predictions[i], expected[i], 1e-5), "");
  }
}

TEST_P(KerasFilesTest, TrainsOnAsKerasDoes) {
  const GoldenCase& golden = GetParam();
  if (!golden.config["trains"].get<bool>()) GTEST_SKIP() << "is not compiled";
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
  TakeSteps(model, golden, kStepCount);
  ExpectKerasWeights(model, golden);
}

// Saving and loading during training changes nothing.
TEST_P(KerasFilesTest, TrainsOnFromItsOwnFile) {
  const GoldenCase& golden = GetParam();
  if (!golden.config["trains"].get<bool>()) GTEST_SKIP() << "is not compiled";
  const std::string path =
      absl::StrCat(testing::TempDir(), golden.name, "_again.keras");
  {
    ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
    TakeSteps(model, golden, 1);
    ASSERT_OK(model.Save(path));
  }
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(path));
  TakeSteps(model, golden, kStepCount - 1);
  ExpectKerasWeights(model, golden);
}

INSTANTIATE_TEST_SUITE_P(Golden, KerasFilesTest,
                         ::testing::ValuesIn(AllCases()),
                         [](const auto& test) { return test.param.name; });

TEST(KerasFilesGoldenTest, WeightsGoThroughFilesOfTheirOwn) {
  const std::string path = testing::TempDir() + "kept.weights.h5";
  ASSERT_OK_AND_ASSIGN(Model model,
                       LoadModel("tests/golden/keras_files/mlp.keras"));
  ASSERT_OK(model.SaveWeights(path));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> saved, model.GetWeights());
  for (const std::string& file :
       {path, std::string("tests/golden/keras_files/mlp.keras")}) {
    Model other = Sequential({Input({4}), Dense(5), Dense(3)});
    ASSERT_OK(other.Compile({}));
    ASSERT_OK(other.LoadWeights(file));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> loaded, other.GetWeights());
    ASSERT_EQ(loaded.size(), saved.size());
    for (size_t i = 0; i < saved.size(); ++i) {
      EXPECT_TRUE(BitwiseEqual(loaded[i], saved[i]));
    }
  }
  Model wider = Sequential({Input({4}), Dense(6), Dense(3)});
  ASSERT_OK(wider.Compile({}));
  EXPECT_THAT(wider.LoadWeights(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers/dense/vars/0 is float32[4,5]")));
  Model deeper = Sequential({Input({4}), Dense(5), Dense(3), Dense(3)});
  ASSERT_OK(deeper.Compile({}));
  EXPECT_THAT(deeper.LoadWeights(path),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("dense_2")));
}

// Muster trains one more step and saves. Compares the file as Keras loads it,
// and the results of further steps in both.
TEST(KerasFilesGoldenTest, KerasReadsWhatMusterWrites) {
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras: "
                    "venv/bin/pip install tensorflow-cpu==2.21.0, and "
                    "MUSTER_KERAS_PYTHON=$PWD/venv/bin/python bazel test ...";
  }
  const std::string folder = testing::TempDir();
  nlohmann::json names = nlohmann::json::array();
  for (const GoldenCase& golden : AllCases()) {
    ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
    if (golden.config["trains"].get<bool>()) TakeSteps(model, golden, 1);
    ASSERT_OK(model.Save(absl::StrCat(folder, golden.name, ".keras")));
    names.push_back(golden.name);
  }
  std::ofstream(folder + "names.json") << names;
  const std::string command =
      absl::StrCat(python, " tests/golden/read_keras_files.py ", folder);
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace muster
