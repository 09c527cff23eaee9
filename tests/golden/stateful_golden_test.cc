#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

constexpr int64_t kBatchSize = 4;
// Three steps of training amplify rounding differences: vector instructions of
// different processors differ by up to 1.5e-5.
constexpr double kTolerance = 2e-5;

std::string SavedByKeras(const GoldenCase& golden) {
  return absl::StrCat("tests/golden/stateful_files/", golden.name, ".keras");
}

// Returns the first `count` batches.
Dataset Batches(const GoldenCase& golden, int64_t count) {
  return Dataset::FromTensorSlices(
             {golden.inputs.at("x"), golden.inputs.at("y")})
      .Batch(kBatchSize)
      .Take(count);
}

class StatefulTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  // Compares the evaluation, and the predictions before and after a reset.
  void ExpectCarriedStates(Model& model) {
    const GoldenCase& golden = GetParam();
    ASSERT_OK_AND_ASSIGN(
        const Logs logs,
        model.Evaluate(Batches(golden, 2), {.verbose = Verbosity::kSilent}));
    EXPECT_NEAR(logs.at("loss"),
                golden.outputs.at("evaluation").ElementAsDouble(0), kTolerance);
    ExpectPredictions(model, "prediction");
    ASSERT_OK(model.ResetStates());
    ExpectPredictions(model, "prediction_after_reset");
  }

  void ExpectPredictions(Model& model, const std::string& name) {
    ASSERT_OK_AND_ASSIGN(const Tensor predictions,
                         model.Predict(Batches(GetParam(), 2)));
    EXPECT_EQ(DescribeDifference(predictions, GetParam().outputs.at(name),
                                 kTolerance),
              "")
        << name;
  }

  void ExpectWeights(Model& model) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(
          DescribeDifference(weights[i],
                             GetParam().outputs.at(absl::StrCat("weight_", i)),
                             kTolerance),
          "")
          << model.weights()[i].name();
    }
    EXPECT_FALSE(
        GetParam().outputs.contains(absl::StrCat("weight_", weights.size())));
  }
};

TEST_P(StatefulTest, FitEvaluateAndPredictCarryStates) {
  const GoldenCase& golden = GetParam();
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
  ASSERT_OK_AND_ASSIGN(
      const History history,
      model.Fit(Batches(golden, 3), {.verbose = Verbosity::kSilent}));
  double mean = 0;
  for (int i = 0; i < 3; ++i) {
    mean += golden.outputs.at(absl::StrCat("loss_", i)).ElementAsDouble(0) / 3;
  }
  EXPECT_NEAR(history.history.at("loss").at(0), mean, kTolerance);
  ExpectCarriedStates(model);
  ExpectWeights(model);
}

// As in Keras, a file contains the options of layers but no states.
TEST_P(StatefulTest, FilesKeepTheOption) {
  const GoldenCase& golden = GetParam();
  const std::string path =
      absl::StrCat(testing::TempDir(), golden.name, "_stateful.keras");
  {
    ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
    ASSERT_OK(model.Fit(Batches(golden, 3), {.verbose = Verbosity::kSilent})
                  .status());
    ASSERT_OK(model.Save(path));
  }
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(path));
  ExpectPredictions(model, "prediction_after_reset");
}

// A checkpoint contains the states, so that a resumed run continues like an
// uninterrupted one.
TEST_P(StatefulTest, CheckpointsKeepStates) {
  const GoldenCase& golden = GetParam();
  const std::string prefix =
      absl::StrCat(testing::TempDir(), golden.name, "_ckpt-1");
  {
    ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
    ASSERT_OK(model.Fit(Batches(golden, 3), {.verbose = Verbosity::kSilent})
                  .status());
    ASSERT_OK(model.SaveCheckpoint(prefix));
  }
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
  ASSERT_OK(model.RestoreCheckpoint(prefix).status());
  ExpectCarriedStates(model);
}

INSTANTIATE_TEST_SUITE_P(Golden, StatefulTest,
                         ::testing::ValuesIn(ReadGoldenCases("stateful.json")),
                         [](const auto& test) { return test.param.name; });

TEST(StatefulGoldenTest, KerasReadsWhatMusterWrites) {
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras";
  }
  std::string command = absl::StrCat(
      python,
      " -c 'import keras, sys\n"
      "for path in sys.argv[1:]:\n"
      "  model = keras.models.load_model(path)\n"
      "  assert model.input_shape[0] == 4, (path, model.input_shape)\n'");
  for (const GoldenCase& golden : ReadGoldenCases("stateful.json")) {
    const std::string path =
        absl::StrCat(testing::TempDir(), golden.name, "_written.keras");
    ASSERT_OK_AND_ASSIGN(Model model, LoadModel(SavedByKeras(golden)));
    ASSERT_OK(model.Save(path));
    absl::StrAppend(&command, " ", path);
  }
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace muster
