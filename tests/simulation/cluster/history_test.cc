#include "tests/simulation/cluster/history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kRecoveryTimeMax = absl::Seconds(10);

// Three steps, each applied once to both servers.
StepHistory GoodHistory() {
  StepHistory history;
  for (int64_t k = 0; k < 3; ++k) {
    history.steps.push_back(
        {.scheduled = absl::OkStatus(), .has_ended = true, .result = k});
  }
  history.counts = {{1, 1, 1}, {1, 1, 1}};
  history.sums = {6, 6};
  history.end = absl::OkStatus();
  return history;
}

std::vector<std::string> Violations(const StepHistory& history) {
  return FindViolations(history, kRecoveryTimeMax);
}

TEST(HistoryTest, AcceptsStepsThatWereAppliedOnce) {
  EXPECT_THAT(Violations(GoodHistory()), IsEmpty());
}

TEST(HistoryTest, NamesALostPush) {
  StepHistory history = GoodHistory();
  history.counts[1][2] = 0;
  history.sums[1] = 3;
  EXPECT_THAT(Violations(history),
              Contains(HasSubstr("lost: the push of step 2 to server 1")));
  EXPECT_THAT(Violations(history), Contains(HasSubstr("sum 1 is 3")));
}

TEST(HistoryTest, NamesADoubledPush) {
  StepHistory history = GoodHistory();
  history.counts[0][1] = 2;
  EXPECT_THAT(Violations(history),
              Contains(HasSubstr("doubled: the push of step 1 to server 0")));
}

TEST(HistoryTest, NamesTheResultOfAnotherStep) {
  StepHistory history = GoodHistory();
  history.steps[1].result = 2;
  EXPECT_THAT(Violations(history), Contains(HasSubstr("step 1 returned 2")));
}

TEST(HistoryTest, NamesAnAssignmentThatArrivedLate) {
  StepHistory history = GoodHistory();
  history.assigned = {5, 5};
  history.read = {5, 4};
  EXPECT_THAT(Violations(history),
              Contains("an earlier assignment has replaced the last one"));
}

TEST(HistoryTest, NamesStepsWithoutSuccess) {
  StepHistory history = GoodHistory();
  history.steps[0].scheduled = absl::UnavailableError("full");
  history.steps[1].has_ended = false;
  history.steps[2].outcome = absl::AbortedError("gone");
  EXPECT_THAT(Violations(history), Contains("step 0 was not scheduled: full"));
  EXPECT_THAT(Violations(history), Contains("step 1 has no outcome"));
  EXPECT_THAT(Violations(history), Contains("step 2 failed: gone"));
}

TEST(HistoryTest, NamesMissingProgress) {
  StepHistory history = GoodHistory();
  history.recovery_time = absl::Seconds(11);
  EXPECT_THAT(Violations(history), Contains(HasSubstr("ended 11s after")));
  history.end = std::nullopt;
  EXPECT_THAT(Violations(history), Contains(HasSubstr("no progress")));
  history.end = absl::UnavailableError("ps 1 is lost");
  EXPECT_THAT(Violations(history), Contains("training failed: ps 1 is lost"));
}

}  // namespace
}  // namespace muster::sim
