#include "coordinator/copy_plan.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr uint64_t kState = 7;

// Task 0 serves, task 2 is the other one.
class CopyPlanTest : public testing::Test {
 protected:
  CopyPlanTest() {
    view_ = {.serving_task = 0, .state_id = kState};
    serving_ = {.task = 0, .incarnation = 10, .state_id = kState};
    other_ = {.task = 2, .incarnation = 12, .state_id = 12};
  }

  // The other task has a complete copy, and the record says so.
  void HaveCopy() {
    view_.has_complete_copy = true;
    serving_.copy.set_holder_incarnation(12);
    serving_.copy.set_is_complete(true);
    other_.copy.set_is_holder(true);
    other_.copy.set_is_complete(true);
    other_.copy.set_state_id(kState);
  }
  static void Lose(ServerWatch::State* task, absl::Duration lost_for) {
    task->lost = absl::UnavailableError("lost");
    task->lost_for = lost_for;
  }
  // Another process runs as the task.
  static void Restart(ServerWatch::State* task) {
    *task = {.task = task->task, .incarnation = 99, .state_id = 99};
  }
  CopyStep Next() const { return NextCopyStep(view_, serving_, other_); }

  CopyView view_;
  ServerWatch::State serving_;
  ServerWatch::State other_;
};

TEST_F(CopyPlanTest, ATaskWithoutACopyGetsOne) {
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kKeepCopy, 2}));
  serving_.copy.set_holder_incarnation(12);
  EXPECT_EQ(Next(), CopyStep());
  serving_.copy.set_is_complete(true);
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kNoteComplete, 2}));
  HaveCopy();
  EXPECT_EQ(Next(), CopyStep());
}

TEST_F(CopyPlanTest, EachPhasePermitsItsSteps) {
  const CopyStep take_over = {CopyAction::kTakeOver, 2};
  const CopyStep keep = {CopyAction::kKeepCopy, 2};
  const CopyStep drop = {CopyAction::kDropCopy, 2};
  for (const CopyStep& step : {take_over, keep, drop}) {
    EXPECT_EQ(InPhase(CopyPhase::kNotConnected, step), CopyStep());
    EXPECT_EQ(InPhase(CopyPhase::kRunning, step), step);
  }
  EXPECT_EQ(InPhase(CopyPhase::kStarting, take_over), take_over);
  EXPECT_EQ(InPhase(CopyPhase::kStarting, keep), CopyStep());
  EXPECT_EQ(InPhase(CopyPhase::kStarting, drop), CopyStep());
  EXPECT_EQ(InPhase(CopyPhase::kEnding, take_over), CopyStep());
  EXPECT_EQ(InPhase(CopyPhase::kEnding, keep), CopyStep());
  EXPECT_EQ(InPhase(CopyPhase::kEnding, drop), drop);
}

TEST_F(CopyPlanTest, NoCopyIsSentToALostTask) {
  Lose(&other_, absl::ZeroDuration());
  EXPECT_EQ(Next(), CopyStep());
}

TEST_F(CopyPlanTest, TheHolderTakesOverFromALostTask) {
  HaveCopy();
  Lose(&serving_, absl::ZeroDuration());
  EXPECT_TRUE(AwaitsTakeOver(view_, serving_));
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kTakeOver, 2}));
}

TEST_F(CopyPlanTest, TheHolderTakesOverFromARestartedTask) {
  HaveCopy();
  Restart(&serving_);
  EXPECT_TRUE(AwaitsTakeOver(view_, serving_));
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kTakeOver, 2}));
}

// The coordinator that recorded the copy may have ended before it was
// incomplete again.
TEST_F(CopyPlanTest, ACopyThatIsNotRecordedDoesNotTakeOver) {
  HaveCopy();
  view_.has_complete_copy = false;
  Lose(&serving_, absl::Minutes(1));
  EXPECT_FALSE(AwaitsTakeOver(view_, serving_));
  EXPECT_EQ(Next(), CopyStep());
}

TEST_F(CopyPlanTest, ATakeoverIsCompleted) {
  HaveCopy();
  view_ = {.serving_task = 2, .state_id = kState};
  EXPECT_EQ(NextCopyStep(view_, other_, serving_),
            (CopyStep{CopyAction::kTakeOver, 2}));
}

TEST_F(CopyPlanTest, ATakeoverThatWasNotRecordedIsRecorded) {
  HaveCopy();
  Lose(&serving_, absl::ZeroDuration());
  other_.copy.Clear();
  other_.state_id = kState;
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kTakeOver, 2}));
}

TEST_F(CopyPlanTest, ALostCopyIsDropped) {
  HaveCopy();
  Lose(&other_, absl::ZeroDuration());
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kDropCopy, 2}));
  HaveCopy();
  Restart(&other_);
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kDropCopy, 2}));
}

TEST_F(CopyPlanTest, ACopyThatReceivesNothingIsDropped) {
  HaveCopy();
  serving_.copy.set_problem("its stream ended");
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kDropCopy, 2}));
}

// The answers of the source wait until it is told.
TEST_F(CopyPlanTest, TheSourceIsToldAgainThatItsCopyIsDropped) {
  HaveCopy();
  view_.has_complete_copy = false;
  serving_.copy.set_problem("its stream ended");
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kDropCopy, 2}));
}

TEST_F(CopyPlanTest, AHolderIsAwaitedBeforeTheStateIsLost) {
  HaveCopy();
  Restart(&serving_);
  Lose(&other_, absl::Milliseconds(500));
  EXPECT_EQ(Next(), CopyStep());
  Lose(&other_, absl::Seconds(5));
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kDropCopy, 2}));
}

TEST_F(CopyPlanTest, ATaskThatWasReplacedIsEnded) {
  other_.state_id = kState;
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kEndTask, 2}));
}

TEST_F(CopyPlanTest, ATaskThatIsToldToEndHandsOverFirst) {
  HaveCopy();
  serving_.is_ending = true;
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kTakeOver, 2}));
}

TEST_F(CopyPlanTest, AHolderMayExitWhenItsCopyIsDropped) {
  HaveCopy();
  other_.is_ending = true;
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kDropCopy, 2}));
  view_.has_complete_copy = false;
  serving_.copy.Clear();
  EXPECT_EQ(Next(), (CopyStep{CopyAction::kAllowExit, 2}));
}

}  // namespace
}  // namespace muster
