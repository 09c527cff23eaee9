#include "common/net/process/job_control.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;
using Action = JobControl::Action;

class JobControlTest : public testing::Test {
 protected:
  JobControl::Done Collect() {
    return [this](absl::StatusOr<std::string> outcome) {
      outcomes_.push_back(std::move(outcome));
    };
  }

  JobControl control_;
  std::vector<absl::StatusOr<std::string>> outcomes_;
};

TEST_F(JobControlTest, RefusesRequestsWhileNothingIsTrained) {
  control_.Ask(Action::kCheckpoint, Collect());
  control_.Ask(Action::kStop, Collect());
  ASSERT_EQ(outcomes_.size(), 2);
  for (const auto& outcome : outcomes_) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("nothing is being trained")));
  }
  EXPECT_FALSE(control_.has_request());
}

TEST_F(JobControlTest, HandsRequestsOverInTheOrderOfArrival) {
  const JobControl::Training training(&control_);
  EXPECT_EQ(control_.Next(), std::nullopt);
  control_.Ask(Action::kCheckpoint, Collect());
  control_.Ask(Action::kStop, Collect());
  EXPECT_TRUE(control_.has_request());
  EXPECT_EQ(control_.Next(), Action::kCheckpoint);
  EXPECT_TRUE(outcomes_.empty());
  control_.Answer("runs/1/ckpt-1");
  ASSERT_EQ(outcomes_.size(), 1);
  EXPECT_EQ(*outcomes_[0], "runs/1/ckpt-1");
  EXPECT_EQ(control_.Next(), Action::kStop);
}

TEST_F(JobControlTest, AStoppedJobStopsItsLaterTrainingToo) {
  {
    const JobControl::Training training(&control_);
    control_.Ask(Action::kStop, Collect());
    control_.Answer(std::string());
  }
  ASSERT_EQ(outcomes_.size(), 1);
  EXPECT_OK(outcomes_[0]);
  EXPECT_TRUE(control_.has_request());
  EXPECT_EQ(control_.Next(), Action::kStop);
}

TEST_F(JobControlTest, TheEndOfTrainingAnswersWhatIsLeft) {
  {
    const JobControl::Training training(&control_);
    control_.Ask(Action::kCheckpoint, Collect());
    control_.Ask(Action::kStop, Collect());
  }
  ASSERT_EQ(outcomes_.size(), 2);
  EXPECT_THAT(outcomes_[0].status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("training has ended")));
  EXPECT_OK(outcomes_[1]);
}

TEST_F(JobControlTest, SaysWhyNothingCanBeDrained) {
  control_.RequestDrain({TaskType::kWorker, 1}, Collect());
  ASSERT_EQ(outcomes_.size(), 1);
  EXPECT_THAT(outcomes_[0].status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::AllOf(HasSubstr("worker 1"),
                                      HasSubstr("musterctl stop"))));
  control_.SetDrainer(
      [](TaskId task, JobControl::Done done) { done(task.ToString()); });
  control_.RequestDrain({TaskType::kWorker, 1}, Collect());
  EXPECT_EQ(*outcomes_.back(), "worker 1");
}

}  // namespace
}  // namespace muster
