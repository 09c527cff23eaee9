#include "coordinator/journal/timeline_record.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/net/status/status_report.h"
#include "coordinator/journal/coordinator_journal.h"
#include "gtest/gtest.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

TimelineStatus Timeline(int event_count) {
  TimelineStatus timeline = {.event_count = event_count,
                             .begun_at = kNow - absl::Seconds(60),
                             .lost = absl::Seconds(6)};
  for (int i = 0; i < event_count; ++i) {
    timeline.events.push_back({.time = kNow - absl::Seconds(i),
                               .text = absl::StrCat("event ", i),
                               .cost = absl::Milliseconds(i)});
  }
  return timeline;
}

TEST(TimelineRecordTest, HoldsTheTimeline) {
  const TimelineStatus timeline =
      TimelineOf(RecordOfTimeline(Timeline(3), kNow));
  EXPECT_EQ(timeline.begun_at, kNow - absl::Seconds(60));
  EXPECT_EQ(timeline.elapsed, absl::Seconds(60));
  EXPECT_EQ(timeline.lost, absl::Seconds(6));
  EXPECT_EQ(timeline.event_count, 3);
  ASSERT_EQ(timeline.events.size(), 3u);
  EXPECT_EQ(timeline.events[2].text, "event 2");
  EXPECT_EQ(timeline.events[2].time, kNow - absl::Seconds(2));
  EXPECT_EQ(timeline.events[2].cost, absl::Milliseconds(2));
}

TEST(TimelineRecordTest, HoldsTheNewestEvents) {
  const TimelineStatus timeline =
      TimelineOf(RecordOfTimeline(Timeline(500), kNow));
  EXPECT_EQ(timeline.event_count, 500);
  ASSERT_EQ(timeline.events.size(), 100u);
  EXPECT_EQ(timeline.events.back().text, "event 499");
}

TEST(TimelineRecordTest, BeforeTrainingNoTimeHasPassed) {
  const TimelineStatus timeline =
      TimelineOf(RecordOfTimeline(TimelineStatus(), kNow));
  EXPECT_EQ(timeline.elapsed, absl::ZeroDuration());
}

TEST(TimelineRecordTest, AChangeCanKeepTheEvents) {
  proto::JournalRecord state;
  *state.mutable_timeline() = RecordOfTimeline(Timeline(3), kNow);
  proto::JournalRecord change;
  *change.mutable_timeline() =
      RecordOfTimeline(Timeline(3), kNow + absl::Seconds(1));
  change.mutable_timeline()->clear_events();
  change.mutable_timeline()->set_keeps_events(true);
  MergeJournalRecord(change, &state);
  EXPECT_EQ(state.timeline().events_size(), 3);
  EXPECT_FALSE(state.timeline().keeps_events());
  EXPECT_EQ(TimelineOf(state.timeline()).elapsed, absl::Seconds(61));
}

}  // namespace
}  // namespace muster
