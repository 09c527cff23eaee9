#include "common/net/rpc/fault_point.h"

#include <csignal>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FaultPointTest : public testing::Test {
 protected:
  void TearDown() override { SetFaults({}); }
};

TEST_F(FaultPointTest, TextNamesPointsCountsAndActions) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Fault> faults,
      ParseFaults("ps.after_apply_before_ack@push=37,worker.before_step@b=2:"
                  "delay=500ms,peers.connect:fail,"
                  "gpu.cuLaunchKernelEx:allocate=20"));
  ASSERT_EQ(faults.size(), 4);
  EXPECT_EQ(faults[0].point, "ps.after_apply_before_ack");
  EXPECT_EQ(faults[0].occurrence, 37);
  EXPECT_EQ(faults[0].action, FaultAction::kKill);
  EXPECT_EQ(faults[1].action, FaultAction::kDelay);
  EXPECT_EQ(faults[1].delay, absl::Milliseconds(500));
  EXPECT_EQ(faults[2].action, FaultAction::kFail);
  EXPECT_EQ(faults[2].occurrence, 1);
  EXPECT_EQ(faults[3].action, FaultAction::kAllocate);
  EXPECT_EQ(faults[3].mebibytes, 20);
}

TEST_F(FaultPointTest, TextThatIsNotUnderstoodIsQuoted) {
  for (const char* text :
       {"@push=1", "peers.connect@push", "peers.connect@push=0",
        "peers.connect:explode", "peers.connect:delay=soon",
        "peers.connect:allocate=lots", "peers.connect@push=x"}) {
    EXPECT_THAT(ParseFaults(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  }
}

TEST_F(FaultPointTest, APointThatDoesNotExistIsNamed) {
  EXPECT_THAT(ParseFaults("ps.before_aply@push=2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("does not exist"),
                             HasSubstr("ps.before_apply"))));
  EXPECT_DEATH(SetFaults({{.point = "ps.before_aply"}}), "IsFaultPoint");
}

TEST_F(FaultPointTest, CurrentFaultsReturnsTheFaultsThatAreSet) {
  EXPECT_TRUE(CurrentFaults().empty());
  SetFaults({{.point = "gpu.cuMemAlloc", .occurrence = 3}});
  ASSERT_EQ(CurrentFaults().size(), 1);
  EXPECT_EQ(CurrentFaults()[0].point, "gpu.cuMemAlloc");
  EXPECT_EQ(CurrentFaults()[0].occurrence, 3);
}

TEST_F(FaultPointTest, InjectsTheFaultAtItsOccurrenceOnly) {
  EXPECT_OK(FaultPoint("peers.connect"));
  SetFaults({{.point = "peers.connect",
              .occurrence = 2,
              .action = FaultAction::kFail}});
  EXPECT_OK(FaultPoint("peers.connect"));
  EXPECT_OK(FaultPoint("peers.prepare"));
  EXPECT_THAT(FaultPoint("peers.connect"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("fault point peers.connect is injected")));
  EXPECT_OK(FaultPoint("peers.connect"));
  EXPECT_EQ(FaultPointPassCount("peers.connect"), 3);
}

TEST_F(FaultPointTest, KillsItsProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        SetFaults({{.point = "peers.connect"}});
        FaultPoint("peers.connect").IgnoreError();
      },
      testing::KilledBySignal(SIGKILL),
      "fault point peers.connect is injected");
}

}  // namespace
}  // namespace muster
