#include "common/net/status/status_report.h"

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

TaskStatus Worker(absl::Duration closure_time) {
  return {.task = "worker",
          .state = TaskStatus::State::kConnected,
          .closure_time = closure_time};
}

TEST(StatusReportTest, AsksTheSourcesThatLive) {
  EXPECT_TRUE(ReadStatus().tasks.empty());
  auto source = std::make_unique<StatusSource>(
      [](StatusReport* report) { report->tasks.push_back({.task = "ps 0"}); });
  ASSERT_EQ(ReadStatus().tasks.size(), 1);
  EXPECT_EQ(ReadStatus().tasks[0].task, "ps 0");
  source = nullptr;
  EXPECT_TRUE(ReadStatus().tasks.empty());
}

TEST(StatusReportTest, ReadyIfAllPartsAre) {
  StatusReport report;
  EXPECT_THAT(Readiness(report),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("starting")));
  report.readiness.push_back(absl::OkStatus());
  EXPECT_OK(Readiness(report));
  report.readiness.push_back(absl::AbortedError("waiting for worker 1"));
  EXPECT_THAT(Readiness(report),
              StatusIs(absl::StatusCode::kUnavailable, "waiting for worker 1"));
}

TEST(StatusReportTest, AWorkerFarSlowerThanTheMedianIsAStraggler) {
  std::vector<TaskStatus> tasks = {
      Worker(absl::Milliseconds(10)), Worker(absl::Milliseconds(11)),
      Worker(absl::Milliseconds(12)), Worker(absl::Milliseconds(25)),
      Worker(absl::ZeroDuration())};
  MarkStragglers(&tasks);
  EXPECT_FALSE(tasks[0].is_straggler);
  EXPECT_FALSE(tasks[2].is_straggler);
  EXPECT_TRUE(tasks[3].is_straggler);
  EXPECT_NEAR(tasks[3].closure_time_ratio.value_or(0), 25.0 / 11, 1e-9);
  EXPECT_EQ(tasks[4].closure_time_ratio, std::nullopt);
  EXPECT_FALSE(tasks[4].is_straggler);  // It has no closure time.
}

TEST(StatusReportTest, OfTwoWorkersTheSlowOneIsAStraggler) {
  std::vector<TaskStatus> tasks = {Worker(absl::Milliseconds(30)),
                                   Worker(absl::Milliseconds(10))};
  MarkStragglers(&tasks);
  EXPECT_TRUE(tasks[0].is_straggler);
  EXPECT_FALSE(tasks[1].is_straggler);
}

TEST(StatusReportTest, ALoneOrALostWorkerIsNoStraggler) {
  std::vector<TaskStatus> tasks = {Worker(absl::Milliseconds(30)),
                                   Worker(absl::Milliseconds(10))};
  tasks[0].state = TaskStatus::State::kLost;
  MarkStragglers(&tasks);
  EXPECT_FALSE(tasks[0].is_straggler);
  EXPECT_FALSE(tasks[1].is_straggler);
}

TEST(StatusReportTest, ATaskThatOthersWaitForIsAStraggler) {
  std::vector<TaskStatus> tasks(2);
  for (TaskStatus& task : tasks) task.state = TaskStatus::State::kConnected;
  tasks[0].waited_share = 0.1;
  tasks[1].waited_share = 0.8;
  MarkStragglers(&tasks);
  EXPECT_FALSE(tasks[0].is_straggler);
  EXPECT_TRUE(tasks[1].is_straggler);
}

}  // namespace
}  // namespace muster
