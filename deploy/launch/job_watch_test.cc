#include "deploy/launch/job_watch.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
const ProcessEnd& kWell = *new ProcessEnd;
const ProcessEnd& kBadly = *new ProcessEnd{.exit_code = 1};
const ProcessEnd& kKilled = *new ProcessEnd{.signal = SIGKILL};

const absl::Time kNow = absl::UnixEpoch();
const absl::Time kLater = kNow + absl::Minutes(1);

JobWatch WithServers() { return JobWatch(ClusterPlan{.ps_count = 1}); }
JobWatch Synchronous() {
  return JobWatch(ClusterPlan{.ps_count = 0, .with_chief = false});
}

TEST(JobWatchTest, TheCoordinatorsEndIsTheJobs) {
  JobWatch watch = WithServers();
  EXPECT_EQ(watch.verdict(kNow), std::nullopt);
  watch.OnEnd(kChief, kWell, kNow);
  EXPECT_EQ(watch.verdict(kNow)->exit_code, 0);
  // A later end of a task does not change the verdict.
  watch.OnEnd(kPs0, kKilled, kNow);
  EXPECT_EQ(watch.verdict(kLater)->exit_code, 0);
}

TEST(JobWatchTest, AKilledCoordinatorFailsTheJobAsAShellCounts) {
  JobWatch watch = WithServers();
  watch.OnEnd(kChief, kKilled, kNow);
  EXPECT_EQ(watch.verdict(kNow)->exit_code, 137);
  EXPECT_THAT(watch.verdict(kNow)->reason, HasSubstr("chief was ended by"));
}

TEST(JobWatchTest, WorkersMayBeLostWhileOneIsLeft) {
  JobWatch watch = WithServers();
  watch.OnEnd(kWorker0, kKilled, kNow);
  EXPECT_EQ(watch.verdict(kLater), std::nullopt);
  EXPECT_EQ(watch.next_change(), absl::InfiniteFuture());
  watch.OnEnd(kWorker1, kBadly, kNow);
  EXPECT_EQ(watch.verdict(kNow), std::nullopt);
  EXPECT_EQ(watch.verdict(watch.next_change())->exit_code, 1);
  EXPECT_THAT(watch.verdict(kLater)->reason, HasSubstr("no worker is left"));
}

TEST(JobWatchTest, TheCoordinatorMayReportALostServerFirst) {
  JobWatch watch = WithServers();
  watch.OnEnd(kPs0, kKilled, kNow);
  EXPECT_EQ(watch.verdict(kNow + absl::Seconds(10)), std::nullopt);
  JobWatch silent = watch;
  watch.OnEnd(kChief, {.exit_code = 7}, kNow + absl::Seconds(1));
  EXPECT_EQ(watch.verdict(kLater)->exit_code, 7);
  EXPECT_EQ(silent.verdict(kLater)->exit_code, 1);
  EXPECT_THAT(silent.verdict(kLater)->reason, HasSubstr("ps 0 was ended by"));
}

TEST(JobWatchTest, AMistakeInTheFlagsEndsTheJobAtOnce) {
  JobWatch watch = WithServers();
  watch.OnEnd(kWorker0, {.exit_code = 2}, kNow);
  EXPECT_EQ(watch.verdict(kNow)->exit_code, 2);
}

TEST(JobWatchTest, WithoutACoordinatorAllMustEndWell) {
  JobWatch watch = Synchronous();
  watch.OnEnd(kWorker0, kWell, kNow);
  EXPECT_EQ(watch.verdict(kLater), std::nullopt);
  watch.OnEnd(kWorker1, kWell, kNow);
  EXPECT_EQ(watch.verdict(kNow)->exit_code, 0);
}

TEST(JobWatchTest, WithoutACoordinatorTheFirstFailureCounts) {
  JobWatch watch = Synchronous();
  watch.OnEnd(kWorker1, {.exit_code = 3}, kNow);
  watch.OnEnd(kWorker0, {.exit_code = 4}, kNow);
  EXPECT_EQ(watch.verdict(kNow)->exit_code, 3);
}

TEST(JobWatchTest, TheEvaluatorIsNotAwaited) {
  JobWatch watch(
      ClusterPlan{.ps_count = 0, .with_chief = false, .with_evaluator = true});
  watch.OnEnd({TaskType::kEvaluator, 0}, kBadly, kNow);
  EXPECT_EQ(watch.verdict(kLater), std::nullopt);
  watch.OnEnd(kWorker0, kWell, kNow);
  watch.OnEnd(kWorker1, kWell, kNow);
  EXPECT_EQ(watch.verdict(kNow)->exit_code, 0);
}

}  // namespace
}  // namespace muster
