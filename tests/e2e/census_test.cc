// A job with string columns is trained with parameter servers, in sync and in
// one process, and then used to predict.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = "examples/wide_and_deep/census.job";

struct Category {
  const char* name;
  int points;
};
constexpr std::array<Category, 4> kEducations = {
    {{"basic", -2}, {"high school", -1}, {"college", 1}, {"doctorate", 3}}};
constexpr std::array<Category, 5> kOccupations = {{{"farming", -1},
                                                   {"\"sales, retail\"", 0},
                                                   {"tech", 2},
                                                   {"teaching", 0},
                                                   {"", -1}}};
constexpr std::array<Category, 4> kRemarks = {{{"Works nights.", 1},
                                               {"works part-time", -2},
                                               {"", 0},
                                               {"Team LEAD!", 2}}};

// Writes a table whose label depends on all columns.
void WriteTable(const std::string& path, uint64_t key, int row_count) {
  std::ofstream file(path);
  file << "id,age,hours,education,occupation,remark,high_income\n";
  RandomStream random(key);
  for (int row = 0; row < row_count; ++row) {
    const auto age = static_cast<int>(18 + random.Below(60));
    const auto hours = static_cast<int>(10 + random.Below(50));
    const Category& education = kEducations[random.Below(kEducations.size())];
    const Category& occupation =
        kOccupations[random.Below(kOccupations.size())];
    const Category& remark = kRemarks[random.Below(kRemarks.size())];
    const double score = education.points + occupation.points + remark.points +
                         (age > 30 && age < 66 ? 1.5 : -1.5) +
                         (hours - 35) / 10.0;
    file << row << ',' << age << ',' << hours << ',' << education.name << ','
         << occupation.name << ',' << remark.name << ',' << (score > 0 ? 1 : 0)
         << '\n';
  }
}

class CensusTest : public ::testing::Test {
 protected:
  CensusTest()
      : folder_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
    WriteTable(folder_ + "/train.csv", 1, 4000);
    WriteTable(folder_ + "/test.csv", 2, 1000);
  }

  std::string RunDir(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }

  // Runs a command with the job until it ends.
  std::string Run(std::vector<std::string> command,
                  const std::string& run_dir) {
    for (const std::string& flag :
         {absl::StrCat("--job=", kJob), absl::StrCat("--run_dir=", run_dir),
          std::string("--set"), absl::StrCat("data_dir=", folder_)}) {
      command.push_back(flag);
    }
    const auto process = ProcessUnderTest::Start(command);
    EXPECT_OK(process);
    if (!process.ok()) return "";
    const absl::StatusOr<ProcessEnd> end = (*process)->AwaitEnd();
    EXPECT_OK(end);
    if (end.ok()) {
      EXPECT_TRUE(end->ok()) << (*process)->output();
    }
    return (*process)->output();
  }

  double TestAccuracy(const std::string& run_dir) const {
    std::ifstream file(run_dir + "/summary.json");
    const auto summary =
        nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    return summary["final"].value("test_binary_accuracy", 0.0);
  }

  const std::string folder_;
};

TEST_F(CensusTest, TrainsOnParameterServers) {
  Run({"deploy/launch/launch", "--workers=2", "--ps=2"}, RunDir("ps"));
  EXPECT_GE(TestAccuracy(RunDir("ps")), 0.93);
}

TEST_F(CensusTest, TrainsInSync) {
  Run({"deploy/launch/launch", "--workers=2", "--ps=0"}, RunDir("sync"));
  EXPECT_GE(TestAccuracy(RunDir("sync")), 0.93);
}

// The prediction uses the vocabularies of the training; otherwise its weights
// would have another meaning.
TEST_F(CensusTest, PredictsAsWellAsItWasEvaluated) {
  const std::string run_dir = RunDir("alone");
  Run({"coordinator/coordinator", "--threads=1"}, run_dir);
  const double accuracy = TestAccuracy(run_dir);
  EXPECT_GE(accuracy, 0.93);
  const std::string predictions = run_dir + "/predictions.csv";
  const std::string output =
      Run({"coordinator/coordinator", "--threads=1",
           absl::StrCat("--predict_data=", folder_, "/test.csv"),
           "--predict=" + predictions},
          run_dir);
  EXPECT_THAT(output, HasSubstr("(1000 rows)"));
  std::ifstream predicted(predictions);
  std::ifstream labelled(folder_ + "/test.csv");
  std::string line;
  std::getline(predicted, line);
  std::getline(labelled, line);
  int right = 0;
  std::string row;
  while (std::getline(predicted, line) && std::getline(labelled, row)) {
    if ((std::atof(line.c_str()) > 0) == (row.back() == '1')) ++right;
  }
  EXPECT_NEAR(right / 1000.0, accuracy, 1e-6);
}

}  // namespace
}  // namespace muster
