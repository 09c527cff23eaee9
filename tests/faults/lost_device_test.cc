// Real processes whose (simulated) GPU is lost because of a hardware error. The
// process cannot use it again, so it exits with a request to be restarted.
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

constexpr char kSimulated[] = "--gpu_simulated=1";
testing::Matcher<std::string> NamesTheError() {
  return testing::ContainsRegex(
      "gpu:0: [A-Za-z_0-9]+ failed: CUDA_ERROR_ECC_UNCORRECTABLE");
}

constexpr absl::string_view kJob = R"(
  model { sequential {
    layers { dense { units: 12 activation: RELU } }
    layers { dense { units: 3 } }
  } }
  variables { name: "epochs" }
  strategy { multi_worker_mirrored { devices: "gpu:0" } }
  input { auto_shard_policy: DATA }
  train { synthetic { example_count: 391 feature_count: 6 class_count: 3
                      seed: 4 } }
  batch_size: 16
  epochs: ${epochs}
  optimizer { adam { learning_rate: 0.02 } }
  loss { sparse_categorical_crossentropy { from_logits: true } }
  seed: 11
)";

class LostDeviceTest : public testing::Test {
 protected:
  void Create(int worker_count, int ps_count) {
    name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(
        cluster_, ClusterUnderTest::Create(name_, worker_count, ps_count));
  }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  void ExpectEndsWith(TaskId task, int exit_code,
                      const testing::Matcher<std::string>& output) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << process(task).output();
    EXPECT_THAT(process(task).output(), output);
  }

  // Starts `task`, whose GPU is lost at kernel launch number `launch`. Without
  // CUDA graphs, each kernel is a separate launch.
  void StartWithFault(TaskId task, int launch) {
    ASSERT_OK(cluster_->Start(
        task, {kSimulated, "--gpu_graphs=off"},
        {{"MUSTER_FAULT",
          absl::StrCat("gpu.cuLaunchKernelEx@call=", launch)}}));
  }

  std::string name_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(LostDeviceTest, ClosuresOfAWorkerRunElsewhereAndItAsksForARestart) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 2));
  cluster_->set_program("tests/faults/counting_program");
  ASSERT_NO_FATAL_FAILURE(StartWithFault(kWorker0, 100));
  ASSERT_OK(cluster_->Start(kWorker1, {kSimulated}));
  ASSERT_OK(cluster_->StartAll({"--set", "recoveries=1"}));
  ASSERT_NO_FATAL_FAILURE(ExpectEndsWith(kWorker0, 138, NamesTheError()));
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       process(kChief).AwaitLine("is lost"));
  EXPECT_THAT(line, AllOf(HasSubstr("worker 0 "), NamesTheError()));
  ASSERT_OK(cluster_->Start(kWorker0, {kSimulated}));
  for (const TaskId& task : cluster_->cluster().Members()) {
    ASSERT_NO_FATAL_FAILURE(ExpectEndsWith(task, 0, testing::_));
  }
  EXPECT_THAT(process(kChief).output(),
              HasSubstr("every closure counted once: "));
}

TEST_F(LostDeviceTest, ASynchronousGroupIsToldWhoseDeviceIsLost) {
  ASSERT_NO_FATAL_FAILURE(Create(3, 0));
  const std::string job = absl::StrCat(testing::TempDir(), "/", name_, ".job");
  std::ofstream(job) << kJob;
  cluster_->set_job(job);
  cluster_->set_worker("tests/faults/worker_with_faults");
  cluster_->set_epochs(1'000'000);
  ASSERT_NO_FATAL_FAILURE(StartWithFault(kWorker1, 2000));
  ASSERT_OK(cluster_->StartAll({kSimulated}));
  ASSERT_NO_FATAL_FAILURE(ExpectEndsWith(kWorker1, 138, NamesTheError()));
  for (const int other : {0, 2}) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectEndsWith({TaskType::kWorker, other}, 138,
                       AllOf(HasSubstr("worker 1"), NamesTheError())));
  }
}

}  // namespace
}  // namespace muster
