// Models that several versions of Keras saved; see write_keras_versions.py.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

constexpr int kStepCount = 3;

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

void ExpectClose(const std::vector<Tensor>& actual,
                 const std::vector<Tensor>& expected, absl::string_view what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(DescribeDifference(actual[i], expected[i], 1e-5), "")
        << what << " " << i;
  }
}

struct SavedModel {
  std::string path;
  GoldenCase golden;
};

std::vector<SavedModel> SavedModels() {
  std::vector<SavedModel> models;
  for (const char* const version :
       {"2.12.0", "2.13.1", "2.15.0", "2.21.0", "3.0.5", "3.3.3", "3.9.2"}) {
    for (const GoldenCase& golden :
         ReadGoldenCases(absl::StrCat("keras_version_", version, ".json"))) {
      for (const std::string file : golden.config["files"]) {
        models.push_back(
            {absl::StrCat("tests/golden/version_files/", file), golden});
      }
    }
  }
  return models;
}

class KerasVersionsTest : public ::testing::TestWithParam<SavedModel> {};

TEST_P(KerasVersionsTest, PredictsAndTrainsAsTheVersionThatSavedIt) {
  const GoldenCase& golden = GetParam().golden;
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(GetParam().path));
  std::vector<Tensor> components = Numbered(golden.inputs, "x_");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> predictions,
                       model.PredictOnBatch(Element(components)));
  ExpectClose(predictions, Numbered(golden.outputs, "prediction_"),
              "prediction");
  if (!golden.config["trains"]) return;
  for (const Tensor& y : Numbered(golden.inputs, "y_")) components.push_back(y);
  for (int i = 0; i < kStepCount; ++i) {
    ASSERT_OK(model.TrainOnBatch(Element(components)).status());
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  ExpectClose(weights, Numbered(golden.outputs, "weight_"), "weight");
}

// The file that Muster writes for the model has the same predictions.
TEST_P(KerasVersionsTest, PredictsTheSameWhenItIsSavedAgain) {
  const GoldenCase& golden = GetParam().golden;
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(GetParam().path));
  const std::string path =
      absl::StrCat(testing::TempDir(), "/saved_again_", golden.name, ".keras");
  ASSERT_OK(model.Save(path));
  ASSERT_OK_AND_ASSIGN(Model again, LoadModel(path));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> predictions,
      again.PredictOnBatch(Element(Numbered(golden.inputs, "x_"))));
  ExpectClose(predictions, Numbered(golden.outputs, "prediction_"),
              "prediction");
}

INSTANTIATE_TEST_SUITE_P(Golden, KerasVersionsTest,
                         ::testing::ValuesIn(SavedModels()),
                         [](const auto& test) {
                           const std::string& path = test.param.path;
                           return absl::StrReplaceAll(
                               path.substr(path.rfind('/') + 1), {{".", "_"}});
                         });

}  // namespace
}  // namespace muster
