// Runs the job file and the program for MNIST on two synchronous workers.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

class MnistMultiWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const data = std::getenv("MUSTER_TEST_DATA");
    if (data == nullptr || *data == 0) {
      GTEST_SKIP() << "MUSTER_TEST_DATA is not set: no folder with mnist/ in "
                      "it";
    }
    data_dir_ = std::filesystem::path(data) / "mnist";
  }

  std::string data_dir_;
};

TEST_F(MnistMultiWorkerTest, TheJobFileLearns) {
  const std::string run_dir = absl::StrCat(testing::TempDir(), "/job");
  ASSERT_OK_AND_ASSIGN(
      const auto launch,
      ProcessUnderTest::Start({"deploy/launch/launch", "--workers=2", "--ps=0",
                               "--job=examples/mnist/mnist_multi_worker.job",
                               "--set", absl::StrCat("data_dir=", data_dir_),
                               absl::StrCat("--run_dir=", run_dir)}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                       launch->AwaitEnd(absl::Minutes(4)));
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
  std::ifstream file(run_dir + "/summary.json");
  const nlohmann::json summary = nlohmann::json::parse(file);
  EXPECT_GE(summary["final"]["test_sparse_categorical_accuracy"], 0.955);
}

TEST_F(MnistMultiWorkerTest, TheProgramLearns) {
  ASSERT_OK_AND_ASSIGN(
      const auto launch,
      ProcessUnderTest::Start(
          {"deploy/launch/launch", "--workers=2", "--ps=0",
           absl::StrCat("--run_dir=", testing::TempDir(), "/program"),
           "--program=examples/mnist/mnist", "--", "--set",
           absl::StrCat("data_dir=", data_dir_)}));
  ASSERT_OK(launch->AwaitLine("test accuracy 0.96", absl::Minutes(4)));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
}

}  // namespace
}  // namespace muster
