#include "common/learn/train/callbacks/monitor.h"

#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/base/metric_direction.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr auto kUp = MetricDirection::kUp;
constexpr auto kDown = MetricDirection::kDown;

absl::StatusOr<Monitor> Create(MonitorMode mode,
                               std::optional<MetricDirection> direction,
                               double min_delta = 0) {
  return Monitor::Create("Test", "value", mode, direction, min_delta);
}

TEST(MonitorTest, TheModeCountsBeforeTheMetric) {
  EXPECT_EQ(Create(MonitorMode::kAuto, kUp)->direction(), MonitorMode::kMax);
  EXPECT_EQ(Create(MonitorMode::kAuto, kDown)->direction(), MonitorMode::kMin);
  EXPECT_EQ(Create(MonitorMode::kMin, kUp)->direction(), MonitorMode::kMin);
  EXPECT_EQ(Create(MonitorMode::kMax, std::nullopt)->direction(),
            MonitorMode::kMax);
}

TEST(MonitorTest, RejectsMetricsWithoutADirection) {
  const absl::Status status = Monitor::Create("EarlyStopping", "val_mean",
                                              MonitorMode::kAuto, std::nullopt)
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "EarlyStopping")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "val_mean")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "mode")) << status;
}

TEST(MonitorTest, SmallChangesAreNoImprovement) {
  ASSERT_OK_AND_ASSIGN(const Monitor loss,
                       Create(MonitorMode::kAuto, kDown, -0.5));
  EXPECT_FALSE(loss.IsImprovement(9.5, 10));
  EXPECT_TRUE(loss.IsImprovement(9.25, 10));
  ASSERT_OK_AND_ASSIGN(const Monitor accuracy,
                       Create(MonitorMode::kAuto, kUp, 0.5));
  EXPECT_FALSE(accuracy.IsImprovement(10.5, 10));
  EXPECT_TRUE(accuracy.IsImprovement(10.75, 10));
}

TEST(MonitorTest, AnyNumberIsBetterThanNaN) {
  ASSERT_OK_AND_ASSIGN(const Monitor loss, Create(MonitorMode::kAuto, kDown));
  EXPECT_TRUE(loss.IsImprovement(NAN, std::nullopt));
  EXPECT_FALSE(loss.IsImprovement(NAN, NAN));
  EXPECT_TRUE(loss.IsImprovement(1e30, NAN));
  EXPECT_FALSE(loss.IsImprovement(NAN, 1e30));
}

TEST(SaveCountsTest, RoundTripsCounts) {
  int wait = 0;
  int epoch = 0;
  std::optional<double> best = 5;
  EXPECT_OK(
      RestoreCounts("Test", SaveCounts({3, 7}, 0.1), {&wait, &epoch}, &best));
  EXPECT_EQ(wait, 3);
  EXPECT_EQ(epoch, 7);
  EXPECT_EQ(best, 0.1);
  EXPECT_OK(RestoreCounts("Test", SaveCounts({4, 8}, std::nullopt),
                          {&wait, &epoch}, &best));
  EXPECT_EQ(wait, 4);
  EXPECT_EQ(best, std::nullopt);
}

TEST(SaveCountsTest, CountsThatEarlierBuildsLackAreKept) {
  int wait = 0;
  int epoch = 7;
  std::optional<double> best;
  EXPECT_OK(
      RestoreCounts("Test", SaveCounts({3}, 0.5), {&wait, &epoch}, &best));
  EXPECT_EQ(wait, 3);
  EXPECT_EQ(epoch, 7);
  EXPECT_EQ(best, 0.5);
}

TEST(SaveCountsTest, InvalidTextIsRejected) {
  int wait = 1;
  std::optional<double> best;
  for (const char* const text : {"", "1", "x;none", "1;2;none", "1;y"}) {
    EXPECT_THAT(RestoreCounts("Test", text, {&wait}, &best),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_EQ(wait, 1);
}

}  // namespace
}  // namespace muster
