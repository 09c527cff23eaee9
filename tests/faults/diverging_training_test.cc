// Real processes whose loss becomes NaN or infinite.
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// The parameter is the number of parameter servers. Without any, workers train
// in sync.
class DivergingTrainingTest : public testing::TestWithParam<int> {
 protected:
  DivergingTrainingTest()
      : cluster_(*ClusterUnderTest::Create("diverging", 2, GetParam())) {
    std::filesystem::remove_all(cluster_->run_dir());
    cluster_->set_job("tests/faults/resuming_digits.job");
    cluster_->set_epochs(2);
  }

  // Trains with a learning rate that makes the weights non-finite. Returns the
  // output of the task that writes the results.
  std::string Train(const std::string& fail_on_non_finite, bool succeeds,
                    bool check_numerics = false) {
    EXPECT_OK(
        cluster_->StartAll({"--set", "learning_rate=1e30", "--set",
                            "fail_on_non_finite=" + fail_on_non_finite,
                            absl::StrCat("--check_numerics=",
                                         check_numerics ? "true" : "false")}));
    for (const TaskId& task : cluster_->cluster().Members()) {
      const auto end = cluster_->process(task).AwaitEnd();
      EXPECT_OK(end);
      if (end.ok()) {
        EXPECT_EQ(end->ShellCode(), succeeds ? 0 : 1)
            << task << " wrote:\n"
            << cluster_->process(task).output();
      }
    }
    return cluster_
        ->process(GetParam() > 0 ? ClusterUnderTest::kChief
                                 : TaskId{TaskType::kWorker, 0})
        .output();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_P(DivergingTrainingTest, FailsAndNamesTheMetricAndTheStep) {
  EXPECT_THAT(Train(/*fail_on_non_finite=*/"true", /*succeeds=*/false),
              ContainsRegex("training diverged: loss is (-?nan|inf) after step "
                            "[0-9]+ of epoch 1; lower the learning rate"));
}

TEST_P(DivergingTrainingTest, IsAWarningIfTheJobAllowsIt) {
  const std::string output =
      Train(/*fail_on_non_finite=*/"false", /*succeeds=*/true);
  EXPECT_THAT(output, ContainsRegex("loss is (-?nan|inf) after step [0-9]+"));
  EXPECT_THAT(output, HasSubstr("Summary: "));
}

TEST_P(DivergingTrainingTest, NamesTheOperationIfNumericsAreChecked) {
  EXPECT_THAT(Train(/*fail_on_non_finite=*/"true", /*succeeds=*/false,
                    /*check_numerics=*/true),
              ContainsRegex("\"[a-z_0-9/]*dense[a-zA-Z_0-9/]*\".*: [0-9]+ of "
                            "[0-9]+ elements of float32.* are not finite"));
}

INSTANTIATE_TEST_SUITE_P(Modes, DivergingTrainingTest, testing::Values(0, 2),
                         [](const testing::TestParamInfo<int>& info) {
                           return info.param > 0 ? "ParameterServers"
                                                 : "SynchronousWorkers";
                         });

}  // namespace
}  // namespace muster
