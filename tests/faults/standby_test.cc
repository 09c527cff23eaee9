// A second coordinator process stands by, and continues the job when the first
// one is lost.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;

class StandbyTest : public testing::Test {
 protected:
  StandbyTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {
    cluster_->set_program("tests/faults/fit_counting_program");
  }

  // Starts the tasks and, once training has begun, another coordinator, which
  // stands by.
  void Start(int epochs) {
    for (const std::string& flag :
         {std::string("--run_dir"), cluster_->run_dir(), std::string("--set"),
          absl::StrCat("epochs=", epochs)}) {
      flags_.push_back(flag);
    }
    ASSERT_OK(cluster_->StartAll(flags_));
    ASSERT_OK(cluster_->process(kChief).AwaitLine("end of epoch 3"));
    StandBy();
  }

  // The present coordinator becomes the leader, and a new one stands by.
  void StandBy() {
    leader_ = cluster_->Release(kChief);
    std::vector<std::string> flags = flags_;
    flags.push_back("--standby");
    ASSERT_OK(cluster_->Start(kChief, flags).status());
    ASSERT_OK(standby().AwaitLine("leads the job in"));
  }

  ProcessUnderTest& standby() { return cluster_->process(kChief); }

  static void ExpectEndsWith(ProcessUnderTest& process, int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process.AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << process.output();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  std::unique_ptr<ProcessUnderTest> leader_;
  std::vector<std::string> flags_;
};

TEST_F(StandbyTest, ContinuesTheTrainingOfEachLostCoordinator) {
  Start(200);
  for (int i = 0; i < 2; ++i) {
    leader_->SendSignal(SIGKILL);
    ASSERT_OK(standby().AwaitLine("continuing the training"));
    ASSERT_OK(standby().AwaitLine("end of epoch"));
    StandBy();
  }
  ExpectEndsWith(*leader_, 0);
  EXPECT_THAT(leader_->output(), HasSubstr("every step counted once: "));
  ExpectEndsWith(standby(), 0);
}

TEST_F(StandbyTest, EndsWithTheJob) {
  Start(60);
  ExpectEndsWith(*leader_, 0);
  ExpectEndsWith(standby(), 0);
  EXPECT_THAT(standby().output(), HasSubstr("the job has ended"));
}

// A signal to the coordinator, as from an engine that moves it, makes all tasks
// exit to be started again.
TEST_F(StandbyTest, TakesOverFromACoordinatorThatWasStopped) {
  Start(100000);
  leader_->SendSignal(SIGTERM);
  ExpectEndsWith(*leader_, 143);
  ASSERT_OK(standby().AwaitLine("this one continues the job"));
  ASSERT_OK(standby().AwaitLine("waiting for"));
}

TEST_F(StandbyTest, ADrainedCoordinatorHandsOver) {
  flags_ = {"--status_port=0", "--control_port=0"};
  Start(300);
  const std::string output = leader_->output();
  const size_t begin = output.find("http://");
  ASSERT_NE(begin, std::string::npos) << output;
  const std::string address =
      output.substr(begin, output.find('\n', begin) - begin);
  ASSERT_OK_AND_ASSIGN(
      const auto control,
      ProcessUnderTest::Start({"deploy/musterctl/musterctl", "drain", "chief:0",
                               absl::StrCat("--status=", address)}));
  ExpectEndsWith(*control, 0);
  ExpectEndsWith(*leader_, 138);
  ASSERT_OK(standby().AwaitLine("continuing the training"));
  ExpectEndsWith(standby(), 0);
  EXPECT_THAT(standby().output(), HasSubstr("every step counted once: "));
}

TEST_F(StandbyTest, ASignalEndsAStandby) {
  Start(100000);
  standby().SendSignal(SIGTERM);
  ExpectEndsWith(standby(), 143);
  leader_->SendSignal(SIGTERM);
  ExpectEndsWith(*leader_, 143);
}

TEST_F(StandbyTest, NeedsAJournal) {
  ASSERT_OK(
      cluster_->Start(kChief, {"--standby", "--coordinator_return_timeout=0"})
          .status());
  ExpectEndsWith(standby(), 2);
  EXPECT_THAT(standby().output(), HasSubstr("--standby needs the --run_dir"));
}

}  // namespace
}  // namespace muster
