// Runs an example on a cluster of processes started by launch. The example
// itself checks that it has learned.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/child_process.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

std::string* const program = new std::string;

TEST(ExampleTest, TrainsOnTwoWorkersAndTwoServers) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ProcessUnderTest> launch,
      ProcessUnderTest::Start(
          {"deploy/launch/launch", "--workers=2", "--ps=2",
           absl::StrCat("--program=", *program),
           absl::StrCat("--run_dir=", testing::TempDir(), "/run")}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                       launch->AwaitEnd(absl::Minutes(4)));
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) *muster::program = argv[1];
  return RUN_ALL_TESTS();
}
