#include "common/net/rpc/fault_point.h"

#include <csignal>
#include <vector>

#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class FaultPointTest : public testing::Test {
 protected:
  void TearDown() override { SetFaults({}); }
};

TEST_F(FaultPointTest, TextNamesPointsCountsAndActions) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Fault> faults,
      ParseFaults("ps.after_apply_before_ack@push=37,a@b=2:delay=500ms,c:fail,"
                  "d:allocate=20"));
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
  for (const char* text : {"@push=1", "a@push", "a@push=0", "a:explode",
                           "a:delay=soon", "a:allocate=lots", "a@push=x"}) {
    EXPECT_THAT(ParseFaults(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  }
}

TEST_F(FaultPointTest, StrikesAtItsOccurrenceOnly) {
  EXPECT_OK(FaultPoint("a"));
  SetFaults({{.point = "a", .occurrence = 2, .action = FaultAction::kFail}});
  EXPECT_OK(FaultPoint("a"));
  EXPECT_OK(FaultPoint("b"));
  EXPECT_THAT(FaultPoint("a"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("fault point a is injected")));
  EXPECT_OK(FaultPoint("a"));
  EXPECT_EQ(FaultPointPassCount("a"), 3);
}

TEST_F(FaultPointTest, KillsItsProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        SetFaults({{.point = "a"}});
        FaultPoint("a").IgnoreError();
      },
      testing::KilledBySignal(SIGKILL), "fault point a is injected");
}

}  // namespace
}  // namespace muster
