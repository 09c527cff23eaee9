// A dataset whose components have names trains a model with several inputs on
// clusters of processes.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

void ExpectLearns(const std::string& workers, const std::string& servers,
                  const std::string& strategy) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ProcessUnderTest> launch,
      ProcessUnderTest::Start(
          {"deploy/launch/launch", workers, servers,
           "--program=tests/e2e/named_inputs_program",
           absl::StrCat("--run_dir=", testing::TempDir(), "/run", servers)}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
  EXPECT_THAT(launch->output(),
              HasSubstr(strategy + " learned 2.00 -1.00, loss 0.0000"));
}

TEST(NamedInputsTest, TrainsOnParameterServers) {
  ExpectLearns("--workers=2", "--ps=1", "parameter_server");
}

TEST(NamedInputsTest, TrainsInSync) {
  ExpectLearns("--workers=2", "--ps=0", "multi_worker_mirrored");
}

}  // namespace
}  // namespace muster
