#include "common/net/status/run_timeline.h"

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/status/status_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::DoubleNear;

class RunTimelineTest : public testing::Test {
 protected:
  SimulatedClock clock_;
  RunTimeline timeline_{&clock_};
};

TEST_F(RunTimelineTest, WithoutEventsAllTimeCounts) {
  EXPECT_EQ(timeline_.status().goodput, 1);
  timeline_.Begin(4);
  clock_.Advance(absl::Seconds(10));
  timeline_.Begin(4);
  EXPECT_EQ(timeline_.status().goodput, 1);
  EXPECT_EQ(timeline_.status().elapsed, absl::Seconds(10));
}

TEST_F(RunTimelineTest, EventsHaveTheirTimeAndCost) {
  timeline_.Begin(4);
  clock_.Advance(absl::Seconds(8));
  timeline_.Note(LogSeverity::kWarning, "training was rolled back",
                 {.pause = absl::Seconds(3)});
  clock_.Advance(absl::Seconds(2));
  const TimelineStatus status = timeline_.status();
  ASSERT_EQ(status.events.size(), 1u);
  EXPECT_EQ(status.events[0].text, "training was rolled back");
  EXPECT_GE(status.events[0].time, status.begun_at);
  EXPECT_EQ(status.events[0].cost, absl::Seconds(3));
  EXPECT_EQ(status.lost, absl::Seconds(3));
  EXPECT_THAT(status.goodput, DoubleNear(0.7, 1e-9));
}

TEST_F(RunTimelineTest, AnAbsentWorkerCostsItsShare) {
  timeline_.Begin(4);
  clock_.Advance(absl::Seconds(10));
  // The second report is of the same loss.
  for (int i = 0; i < 2; ++i) {
    timeline_.Note(LogSeverity::kWarning, "worker 1 is lost",
                   {.lost = {"worker 1"}});
  }
  clock_.Advance(absl::Seconds(10));
  // It is absent now.
  EXPECT_EQ(timeline_.status().lost, absl::Seconds(2.5));
  timeline_.Note(LogSeverity::kInfo, "worker 1 has reconnected",
                 {.returned = {"worker 1"}});
  clock_.Advance(absl::Seconds(5));
  const TimelineStatus status = timeline_.status();
  EXPECT_EQ(status.lost, absl::Seconds(2.5));
  EXPECT_EQ(status.events.back().cost, absl::Seconds(2.5));
  EXPECT_THAT(status.goodput, DoubleNear(0.9, 1e-9));
}

TEST_F(RunTimelineTest, AnAbsenceCostsNothingBeforeTrainingBegins) {
  timeline_.Note(LogSeverity::kWarning, "worker 1 is lost",
                 {.lost = {"worker 1"}});
  clock_.Advance(absl::Seconds(100));
  timeline_.Begin(2);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(timeline_.status().lost, absl::Seconds(5));
}

TEST_F(RunTimelineTest, AReturnWithoutALossCostsNothing) {
  timeline_.Begin(4);
  clock_.Advance(absl::Seconds(10));
  timeline_.Note(LogSeverity::kInfo, "worker 1 has joined",
                 {.returned = {"worker 1"}});
  EXPECT_EQ(timeline_.status().goodput, 1);
}

TEST_F(RunTimelineTest, OldEventsAreCountedAndNotListed) {
  const int count = static_cast<int>(RunTimeline::kEventsMax) + 5;
  SetMinimumLogSeverity(LogSeverity::kError);
  for (int i = 0; i < count; ++i) {
    timeline_.Note(LogSeverity::kInfo, std::to_string(i), {});
  }
  SetMinimumLogSeverity(LogSeverity::kInfo);
  const TimelineStatus status = timeline_.status();
  EXPECT_EQ(status.event_count, count);
  EXPECT_EQ(status.events.size(), RunTimeline::kEventsMax);
  EXPECT_EQ(status.events.front().text, "5");
}

TEST_F(RunTimelineTest, EarlierEventsComeFirst) {
  timeline_.Begin(1);
  timeline_.Note(LogSeverity::kInfo, "second", {});
  timeline_.AddEarlier({{.text = "first", .cost = absl::Seconds(9)}});
  clock_.Advance(absl::Seconds(10));
  const TimelineStatus status = timeline_.status();
  ASSERT_EQ(status.events.size(), 2u);
  EXPECT_EQ(status.events[0].text, "first");
  EXPECT_EQ(status.goodput, 1);
}

TEST_F(RunTimelineTest, ContinuesThatOfAnEarlierProcess) {
  const absl::Time begun_at = absl::Now() - absl::Seconds(100);
  timeline_.Continue({.events = {{.time = begun_at,
                                  .text = "first",
                                  .cost = absl::Seconds(8)}},
                      .event_count = 3,
                      .begun_at = begun_at,
                      .elapsed = absl::Seconds(90),
                      .lost = absl::Seconds(10)},
                     "continuing");
  timeline_.Begin(2);
  const TimelineStatus status = timeline_.status();
  EXPECT_EQ(status.begun_at, begun_at);
  EXPECT_EQ(status.event_count, 4);
  ASSERT_EQ(status.events.size(), 2u);
  EXPECT_EQ(status.events[0].text, "first");
  // Ten seconds passed between the two processes.
  EXPECT_NEAR(absl::ToDoubleSeconds(status.events[1].cost), 10, 1);
  EXPECT_NEAR(status.goodput, 0.8, 0.01);
}

TEST_F(RunTimelineTest, IsPartOfTheStatusOfTheProcess) {
  timeline_.Note(LogSeverity::kInfo, "ps 0 has taken over from ps 1", {});
  const StatusReport report = ReadStatus();
  ASSERT_TRUE(report.timeline.has_value());
  EXPECT_EQ(report.timeline->events.size(), 1u);
}

}  // namespace
}  // namespace muster
