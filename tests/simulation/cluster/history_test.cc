#include "tests/simulation/cluster/history.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kRecoveryTimeMax = absl::Seconds(10);

// A second coordinator with three steps, each applied once to both servers. All
// steps of the first one were applied and the first of them acknowledged.
class HistoryTest : public testing::Test {
 protected:
  HistoryTest() {
    for (size_t i = 0; i < 2; ++i) {
      history_.coordinators.push_back(std::make_unique<StepHistory>());
      StepHistory& added = *history_.coordinators.back();
      added.job_id = "job";
      added.coordinator = i;
      added.steps.resize(3);
    }
    history_.coordinators[0]->steps[0].is_acknowledged = true;
    for (int64_t k = 0; k < 3; ++k) {
      last().steps[k].has_ended = true;
      last().steps[k].result = 3 + k;
    }
    last().counts = {{1, 1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 1, 0}};
    last().sums = {{21}, {21}};
    history_.end = absl::OkStatus();
  }

  StepHistory& last() { return *history_.coordinators.back(); }
  std::vector<std::string> Violations() const {
    return FindViolations(history_, kRecoveryTimeMax);
  }

  RunHistory history_;
};

TEST_F(HistoryTest, AcceptsStepsThatWereAppliedOnce) {
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, NamesALostPush) {
  last().counts[1][5] = 0;
  last().sums[1] = {14};
  EXPECT_THAT(Violations(),
              Contains(HasSubstr("lost: the push of step 2 to server 1")));
  EXPECT_THAT(Violations(),
              Contains(HasSubstr("a sum on server 1 is 14; expected 15")));
}

TEST_F(HistoryTest, NamesADoubledPush) {
  last().counts[0][4] = 2;
  EXPECT_THAT(Violations(),
              Contains(HasSubstr("doubled: the push of step 1 to server 0")));
}

TEST_F(HistoryTest, NamesALostPushOfAnEarlierCoordinator) {
  last().counts[0][0] = 0;
  last().counts[0][1] = 0;
  last().sums[0] = {18};
  EXPECT_THAT(Violations(),
              testing::ElementsAre(HasSubstr(
                  "lost: the push of step 0 of coordinator 0 to server 0")));
  history_.has_replaced_servers = true;
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, NamesAPushOfNoStep) {
  last().counts[0][6] = 1;
  last().sums[0] = {28};
  EXPECT_THAT(Violations(), Contains(HasSubstr("step 0 of coordinator 2")));
}

TEST_F(HistoryTest, NamesTheResultOfAnotherStep) {
  last().steps[1].result = 5;
  EXPECT_THAT(Violations(), Contains(HasSubstr("step 1 returned 5")));
}

TEST_F(HistoryTest, NamesAnAssignmentThatArrivedLate) {
  last().assigned = {5, 5};
  last().read = {5, 4};
  EXPECT_THAT(Violations(),
              Contains("an earlier assignment has replaced the last one"));
}

TEST_F(HistoryTest, NamesStepsWithoutSuccess) {
  last().steps[0].scheduled = absl::UnavailableError("full");
  last().steps[1].has_ended = false;
  last().steps[2].outcome = absl::AbortedError("gone");
  EXPECT_THAT(Violations(), Contains("step 0 was not scheduled: full"));
  EXPECT_THAT(Violations(), Contains("step 1 has no outcome"));
  EXPECT_THAT(Violations(), Contains("step 2 failed: gone"));
}

TEST_F(HistoryTest, NamesWrongAnswersOfAllCoordinators) {
  history_.coordinators[0]->wrong_answers = {"a rollback was not reported"};
  history_.false_loss_count = 2;
  EXPECT_THAT(Violations(), Contains("a rollback was not reported"));
  EXPECT_THAT(Violations(), Contains(HasSubstr("2 tasks counted as lost")));
}

TEST_F(HistoryTest, NamesMissingProgress) {
  history_.recovery_time = absl::Seconds(11);
  EXPECT_THAT(Violations(), Contains(HasSubstr("ended 11s after")));
  history_.end = std::nullopt;
  EXPECT_THAT(Violations(), Contains(HasSubstr("no progress")));
  history_.end = absl::UnavailableError("ps 1 is lost");
  EXPECT_THAT(Violations(), Contains("training failed: ps 1 is lost"));
}

}  // namespace
}  // namespace muster::sim
