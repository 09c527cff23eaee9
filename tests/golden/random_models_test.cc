// Models that were drawn at random and saved by Keras. In one process, with two
// synchronous workers, and with parameter servers they must predict and learn
// what Keras does. random_models/record.py describes the cases.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/learn/train/testing/local_workers.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/test_cluster.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

constexpr int kStepCount = 3;
// Relative to the largest value of a tensor, or to 1 if that is larger: an
// element that is small compared with the others is a difference of large
// numbers. Models whose results depend on rounding are not drawn, so this
// tolerance is well above the effect of another order of rounding.
constexpr double kTolerance = 1e-5;

void ExpectClose(const Tensor& actual, const Tensor& expected,
                 const std::string& what) {
  double size = 1;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    size = std::max(size, std::abs(expected.ElementAsDouble(i)));
  }
  ASSERT_EQ(actual.type(), expected.type()) << what;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const double e = expected.ElementAsDouble(i);
    ASSERT_NEAR(actual.ElementAsDouble(i), e, kTolerance * size)
        << what << ", element " << i;
  }
}

// Returns the tensors whose names begin with `prefix`, in the order of their
// numbers: the examples of one batch or, if `batch` is negative, all examples.
std::vector<Tensor> Numbered(const std::map<std::string, Tensor>& tensors,
                             const std::string& prefix, int batch = -1) {
  std::vector<Tensor> found;
  while (true) {
    const auto next = tensors.find(absl::StrCat(prefix, found.size()));
    if (next == tensors.end()) return found;
    if (batch < 0) {
      found.push_back(next->second);
      continue;
    }
    const int64_t size = next->second.shape().dim(0) / kStepCount;
    found.push_back(next->second.SliceRows(batch * size, batch * size + size));
  }
}

Element BatchOf(const GoldenCase& golden, int batch) {
  std::vector<Tensor> components;
  for (const char* const prefix : {"x_", "y_", "w_"}) {
    for (Tensor& one : Numbered(golden.inputs, prefix, batch)) {
      components.push_back(std::move(one));
    }
  }
  return Element(components);
}

// Takes steps [begin, end) and compares the loss and the metrics of each.
void ExpectSteps(Model& model, const GoldenCase& golden, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    ASSERT_OK_AND_ASSIGN(const Logs logs,
                         model.TrainOnBatch(BatchOf(golden, step)));
    for (const auto& [name, expected] : golden.outputs) {
      absl::string_view key = name;
      if (!absl::ConsumePrefix(&key, "log_")) continue;
      const auto found = logs.find(std::string(key));
      ASSERT_NE(found, logs.end()) << key;
      const double e = expected.ElementAsDouble(step);
      EXPECT_NEAR(found->second, e, kTolerance * std::max(1.0, std::abs(e)))
          << key << " of step " << step;
    }
  }
}

void ExpectWeights(const Model& model, const GoldenCase& golden) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
  const std::vector<Tensor> expected = Numbered(golden.outputs, "weight_");
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    ExpectClose(weights[i], expected[i],
                absl::StrCat("weight ", model.weights()[i].name()));
  }
}

void ExpectPredictions(Model& model, const GoldenCase& golden) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> predictions,
      model.PredictOnBatch(Element(Numbered(golden.inputs, "x_", 0))));
  const std::vector<Tensor> expected = Numbered(golden.outputs, "prediction_");
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ExpectClose(predictions[i], expected[i], absl::StrCat("prediction ", i));
  }
}

// Trains the model at `path` and compares with Keras.
void ExpectKeras(Strategy& strategy, const GoldenCase& golden,
                 const std::string& path) {
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(strategy, path));
  ExpectPredictions(model, golden);
  ExpectSteps(model, golden, 0, kStepCount);
  ExpectWeights(model, golden);
}

std::unique_ptr<Strategy> OneProcess() {
  return DefaultStrategy::Create({.thread_count = 1}).value();
}

void ExpectKerasInOneProcess(const GoldenCase& golden,
                             const std::string& path) {
  SCOPED_TRACE("in one process");
  ExpectKeras(*OneProcess(), golden, path);
}

void ExpectKerasInSync(const GoldenCase& golden, const std::string& path) {
  if (!golden.config["is_synchronous"].get<bool>()) return;
  RunLocalWorkers(2, 1, {}, [&](int worker, SynchronousStrategy& strategy) {
    SCOPED_TRACE(absl::StrCat(golden.name, " in sync, worker ", worker));
    ExpectKeras(strategy, golden, path);
  });
}

void ExpectKerasOnServers(const GoldenCase& golden, const std::string& path) {
  if (!golden.config["has_servers"].get<bool>()) return;
  SCOPED_TRACE("on parameter servers");
  TestCluster cluster(2, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, cluster.Connect());
  ExpectKeras(*strategy, golden, path);
}

// Saves the model after one step, and continues from that file.
void ExpectKerasFromItsOwnFile(const GoldenCase& golden,
                               const std::string& path,
                               const std::string& saved) {
  SCOPED_TRACE("from its own file");
  {
    const std::unique_ptr<Strategy> strategy = OneProcess();
    ASSERT_OK_AND_ASSIGN(Model model, LoadModel(*strategy, path));
    ExpectSteps(model, golden, 0, 1);
    ASSERT_OK(model.Save(saved));
  }
  const std::unique_ptr<Strategy> strategy = OneProcess();
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(*strategy, saved));
  ExpectSteps(model, golden, 1, kStepCount);
  ExpectWeights(model, golden);
}

class RandomModelsTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  std::string Path() const {
    return absl::StrCat("tests/golden/random_files/", GetParam().name,
                        ".keras");
  }
};

TEST_P(RandomModelsTest, LearnsInOneProcessWhatKerasDoes) {
  ExpectKerasInOneProcess(GetParam(), Path());
}

TEST_P(RandomModelsTest, LearnsInSyncWhatKerasDoes) {
  ExpectKerasInSync(GetParam(), Path());
}

TEST_P(RandomModelsTest, LearnsOnServersWhatKerasDoes) {
  ExpectKerasOnServers(GetParam(), Path());
}

TEST_P(RandomModelsTest, GoesOnFromItsOwnFile) {
  ExpectKerasFromItsOwnFile(
      GetParam(), Path(),
      absl::StrCat(testing::TempDir(), GetParam().name, "_again.keras"));
}

INSTANTIATE_TEST_SUITE_P(
    Golden, RandomModelsTest,
    ::testing::ValuesIn(ReadGoldenCases("random_models.json")),
    [](const auto& test) { return test.param.name; });

std::string FromEnvironment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// Keras makes, saves and trains models. Muster trains them and compares, and
// saves each of them after one step. Keras continues from those files.
TEST(RandomModels, OfAllSeedsLearnWhatKerasDoes) {
  const std::string python = FromEnvironment("MUSTER_KERAS_PYTHON", "");
  if (python.empty()) {
    GTEST_SKIP() << "MUSTER_KERAS_PYTHON does not name a Python with Keras: "
                    "venv/bin/pip install tensorflow-cpu==2.21.0, and "
                    "MUSTER_KERAS_PYTHON=$PWD/venv/bin/python bazel test ...";
  }
  std::string folder = FromEnvironment("MUSTER_RANDOM_FOLDER", "");
  if (folder.empty()) {
    folder = testing::TempDir() + "random_models";
    const std::string command = absl::StrCat(
        python, " tests/golden/write_random_models.py ", folder,
        " --seed=", FromEnvironment("MUSTER_RANDOM_SEED", "0"),
        " --count=", FromEnvironment("MUSTER_RANDOM_COUNT", "200"));
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  nlohmann::json names = nlohmann::json::array();
  for (const GoldenCase& golden :
       ReadGoldenCasesAt(folder + "/random_models.json")) {
    SCOPED_TRACE(golden.name);
    const std::string path = absl::StrCat(folder, "/", golden.name, ".keras");
    ExpectKerasInOneProcess(golden, path);
    ExpectKerasInSync(golden, path);
    ExpectKerasOnServers(golden, path);
    const std::string saved =
        absl::StrCat(testing::TempDir(), golden.name, ".keras");
    ExpectKerasFromItsOwnFile(golden, path, saved);
    if (std::ifstream(saved).good()) names.push_back(golden.name);
  }
  std::ofstream(testing::TempDir() + "names.json") << names;
  const std::string command =
      absl::StrCat(python, " tests/golden/read_random_models.py ", folder, " ",
                   testing::TempDir());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace muster
