#include "coordinator/command_plan.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/tick_loop.h"
#include "coordinator/closure_queue.h"
#include "coordinator/definitions.h"
#include "coordinator/worker_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// A fixture with one worker whose session is open.
class CommandPlanTest : public testing::Test {
 protected:
  CommandPlanTest()
      : queue_({.worker_count = 1, .window = {.closures_at_start = 2}}) {
    definitions_.AddFunction("step", "graph");
    record_.state = WorkerRecord::State::kOpen;
    record_.session = 7;
    queue_.WorkerReady(0);
    // The current mark counts as sent.
    record_.sent_low_water_mark = queue_.low_water_mark();
  }

  std::optional<PlannedCommand> Plan(bool is_tick = false) {
    return PlanCommand(sources_, {.now = now_, .is_tick = is_tick}, &record_);
  }

  const absl::Time now_ = absl::UnixEpoch();
  ClosureQueue queue_;
  Definitions definitions_;
  WorkerRecord record_;
  CommandSources sources_ = {.definitions = &definitions_, .queue = &queue_};
};

TEST_F(CommandPlanTest, OnlyAHeartbeatMayBeEmpty) {
  EXPECT_FALSE(Plan().has_value());
  const auto heartbeat = Plan(/*is_tick=*/true);
  ASSERT_TRUE(heartbeat.has_value());
  EXPECT_EQ(heartbeat->session, 7u);
  EXPECT_EQ(heartbeat->command.ByteSizeLong(), 0u);
}

TEST_F(CommandPlanTest, TakesClosuresAndWhatTheyNeed) {
  for (int i = 0; i < 3; ++i) queue_.Add({});
  const auto plan = Plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(plan->closures, SizeIs(2));
  EXPECT_TRUE(plan->leaves_closures);
  EXPECT_EQ(plan->command.functions_size(), 1);
}

TEST_F(CommandPlanTest, TakesNoClosuresWhileNothingMayStart) {
  queue_.Add({});
  sources_.hands_out_closures = false;
  EXPECT_FALSE(Plan().has_value());
}

TEST_F(CommandPlanTest, TakesNoClosuresForAPausedWorker) {
  queue_.Add({});
  record_.paused_until = now_ + absl::Seconds(1);
  EXPECT_FALSE(Plan().has_value());
  record_.paused_until = now_;
  EXPECT_TRUE(Plan().has_value());
}

TEST_F(CommandPlanTest, SendsWhatIsRecalledAndReleasedOnce) {
  // The worker has started the first closure.
  for (int i = 0; i < 2; ++i) queue_.Add({});
  Plan();
  queue_.RecallUnstarted();
  record_.released = {3, 4};
  const auto plan = Plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(plan->command.recalled(), ElementsAre(2));
  EXPECT_THAT(plan->command.released(), ElementsAre(3, 4));
  EXPECT_FALSE(Plan().has_value());
}

TEST_F(CommandPlanTest, SendsTheLowWaterMarkWhenItRises) {
  queue_.Add({});
  Plan();
  ASSERT_OK(queue_.Finish(0, 1, {}));
  const auto plan = Plan(/*is_tick=*/true);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->command.low_water_mark(), 2u);
  EXPECT_EQ(Plan(/*is_tick=*/true)->command.low_water_mark(), 0u);
}

TEST_F(CommandPlanTest, ADrainedWorkerIsToldWhenItHoldsNothing) {
  queue_.Add({});
  Plan();
  record_.is_leaving = true;
  EXPECT_FALSE(Plan().has_value());
  ASSERT_OK(queue_.Finish(0, 1, {}));
  const auto plan = Plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->is_last);
  EXPECT_EQ(plan->command.job_end().exit_code(), 0);
  EXPECT_THAT(plan->command.job_end().reason(),
              testing::HasSubstr("has been drained"));
}

TEST_F(CommandPlanTest, TellsTheEndOfTheJob) {
  proto::JobEnd end;
  end.set_exit_code(3);
  sources_.job_end = &end;
  const auto plan = Plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->is_last);
  EXPECT_EQ(plan->command.job_end().exit_code(), 3);
}

}  // namespace
}  // namespace muster
