// Trains with the coordinator's executable, and predicts with the final
// weights.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTestData[] = "examples/data/digits/test.csv";

// Returns the cells of a column, without the column's name.
std::vector<std::string> Column(const std::string& path,
                                const std::string& name) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = absl::StrSplit(line, ',');
  size_t index = 0;
  while (index < names.size() && names[index] != name) ++index;
  EXPECT_LT(index, names.size()) << path << " has no " << name << ": " << line;
  std::vector<std::string> cells;
  while (index < names.size() && std::getline(file, line)) {
    cells.push_back(std::vector<std::string>(absl::StrSplit(line, ','))[index]);
  }
  return cells;
}

class PredictTest : public ::testing::Test {
 protected:
  // Runs the coordinator until it ends. Returns its output.
  std::string Run(std::vector<std::string> flags, int exit_code,
                  const ProcessUnderTest::Environment& environment = {}) {
    flags.insert(flags.begin(), {"coordinator/coordinator",
                                 "--job=examples/digits/digits.job"});
    const auto process = ProcessUnderTest::Start(flags, environment);
    EXPECT_OK(process);
    if (!process.ok()) return "";
    const absl::StatusOr<ProcessEnd> end = (*process)->AwaitEnd();
    EXPECT_OK(end);
    if (end.ok()) {
      EXPECT_EQ(end->ShellCode(), exit_code) << (*process)->output();
    }
    return (*process)->output();
  }

  const std::string run_dir_ = absl::StrCat(testing::TempDir(), "/run");
  const std::string predictions_ = absl::StrCat(run_dir_, "/predictions.csv");
};

TEST_F(PredictTest, PredictionsAreAsGoodAsTheEvaluationOfTheTraining) {
  Run({"--set=epochs=3", "--threads=1", "--run_dir=" + run_dir_}, 0);
  const std::string output =
      Run({"--set=epochs=3", "--threads=1", "--run_dir=" + run_dir_,
           absl::StrCat("--predict_data=", kTestData),
           "--predict=" + predictions_, "--predict_classes"},
          0);
  EXPECT_THAT(output, HasSubstr(absl::StrCat("Predictions: ", predictions_)));
  const std::vector<std::string> labels = Column(kTestData, "label");
  const std::vector<std::string> classes =
      Column(predictions_, "dense_2_class");
  ASSERT_EQ(classes.size(), labels.size());
  double right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == classes[i]) ++right;
  }
  std::ifstream file(run_dir_ + "/summary.json");
  const nlohmann::json summary = nlohmann::json::parse(file);
  EXPECT_NEAR(right / static_cast<double>(labels.size()),
              summary["final"]["test_sparse_categorical_accuracy"], 1e-6);
  const std::string evaluated = Run(
      {"--set=epochs=3", "--threads=1", "--run_dir=" + run_dir_, "--evaluate"},
      0);
  EXPECT_THAT(evaluated,
              AllOf(HasSubstr(absl::StrFormat(
                        "test - loss: %.4f",
                        summary["final"]["test_loss"].get<double>())),
                    HasSubstr(absl::StrFormat(
                        "sparse_categorical_accuracy: %.4f",
                        summary["final"]["test_sparse_categorical_accuracy"]
                            .get<double>()))));
}

TEST_F(PredictTest, SaysWhatIsMissing) {
  const std::string predict = "--predict=" + predictions_;
  EXPECT_THAT(Run({predict}, 2),
              AllOf(HasSubstr("--run_dir=DIR"), HasSubstr("--weights=PREFIX")));
  EXPECT_THAT(Run({"--weights=w"}, 2), HasSubstr("--predict=OUT.csv"));
  EXPECT_THAT(Run({"--evaluate"}, 2), HasSubstr("--evaluate needs trained"));
  EXPECT_THAT(Run({"--evaluate", predict}, 2), HasSubstr("exclude each other"));
  EXPECT_THAT(
      Run({predict, "--weights=w"}, 2,
          {{"TF_CONFIG", R"({"cluster": {"worker": ["localhost:1"],)"
                         R"( "ps": ["localhost:2"], "chief":)"
                         R"( ["localhost:3"]}, "task": {"type": "chief",)"
                         R"( "index": 0}})"}}),
      HasSubstr("--predict runs in one process"));
}

}  // namespace
}  // namespace muster
