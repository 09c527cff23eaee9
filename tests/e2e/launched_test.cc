// The main job as started in the README: a whole cluster through `launch`.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

struct Size {
  int workers;
  int servers;
};

class LaunchedTest : public testing::TestWithParam<Size> {};

TEST_P(LaunchedTest, LearnsTheDigits) {
  const auto [workers, servers] = GetParam();
  const std::string run_dir =
      absl::StrCat(testing::TempDir(), "/digits-", workers, "-", servers);
  const auto launch = ProcessUnderTest::Start(
      {"deploy/launch/launch", absl::StrCat("--workers=", workers),
       absl::StrCat("--ps=", servers), "--job=examples/digits/digits.job",
       absl::StrCat("--run_dir=", run_dir)});
  ASSERT_OK(launch);
  EXPECT_OK((*launch)->AwaitLine("Epoch 1/30"));
  EXPECT_OK((*launch)->AwaitLine(absl::StrCat(run_dir, "/summary.json")));
  const absl::StatusOr<ProcessEnd> end = (*launch)->AwaitEnd();
  ASSERT_OK(end);
  EXPECT_TRUE(end->ok()) << (*launch)->output();
  std::ifstream file(run_dir + "/summary.json");
  const nlohmann::json summary = nlohmann::json::parse(file);
  EXPECT_EQ(summary["history"]["epoch"].size(), 30u);
  EXPECT_GE(summary["final"]["test_sparse_categorical_accuracy"], 0.96);
  const nlohmann::json times = summary["worker_step_milliseconds"];
  EXPECT_GT(times["p50"], 0);
  EXPECT_GE(times["max"], times["p50"]);
  // Only launch writes the log, not the task as well.
  std::ifstream log(run_dir + "/logs/ps-0.log");
  int start_lines = 0;
  for (std::string line; std::getline(log, line);) {
    if (absl::StrContains(line, absl::StrCat("ps 0 of ", servers))) {
      ++start_lines;
    }
  }
  EXPECT_EQ(start_lines, 1);
}

// Returns the output of `launch --check_config` for a job. Checks its exit
// code.
absl::StatusOr<std::string> Check(const std::vector<std::string>& flags,
                                  int expected_code) {
  std::vector<std::string> arguments = {"deploy/launch/launch",
                                        "--check_config"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  ASSIGN_OR_RETURN(const auto launch, ProcessUnderTest::Start(arguments));
  ASSIGN_OR_RETURN(const ProcessEnd end, launch->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), expected_code) << launch->output();
  return launch->output();
}

TEST(LaunchTest, ChecksAJobWithoutStartingIt) {
  const std::string run_dir = testing::TempDir() + "/checked";
  for (const std::string servers : {"--ps=2", "--ps=0"}) {
    EXPECT_THAT(Check({"--job=examples/digits/digits.job", servers,
                       "--run_dir=" + run_dir},
                      0),
                IsOkAndHolds(
                    testing::AllOf(testing::HasSubstr("each worker"),
                                   testing::HasSubstr("<- this task"),
                                   testing::Not(testing::HasSubstr("Epoch")))));
  }
  EXPECT_FALSE(std::filesystem::exists(run_dir));
  const std::string bad = testing::TempDir() + "/bad.job";
  std::ofstream(bad)
      << "model { functional { inputs { name: 'x' shape: [4] } layers { "
         "reshape { target_shape: [3, 5] } } } }\n"
         "train { synthetic { feature_count: 4 } }\n"
         "optimizer { adam {} } loss { mean_squared_error {} }\n";
  EXPECT_THAT(Check({"--job=" + bad}, 2),
              IsOkAndHolds(testing::HasSubstr("eshape")));
  EXPECT_THAT(Check({"--job=/dev/zero"}, 2),
              IsOkAndHolds(testing::HasSubstr("cannot read /dev/zero")));
  EXPECT_THAT(Check({"--program=/bin/true"}, 2),
              IsOkAndHolds(testing::HasSubstr("--check_config")));
}

// Includes one worker, whose copy of the data also repeats indefinitely.
INSTANTIATE_TEST_SUITE_P(Clusters, LaunchedTest,
                         testing::Values(Size{2, 2}, Size{1, 1}, Size{3, 1}));

}  // namespace
}  // namespace muster
