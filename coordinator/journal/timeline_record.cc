#include "coordinator/journal/timeline_record.h"

#include <algorithm>
#include <cstddef>

#include "proto/coordinator_journal.pb.h"

namespace muster {
namespace {

// A record is written every second.
constexpr size_t kEventsMax = 100;

}  // namespace

proto::JournalTimeline RecordOfTimeline(const TimelineStatus& timeline,
                                        absl::Time now) {
  proto::JournalTimeline record;
  record.set_begun_at_ns(absl::ToUnixNanos(std::min(timeline.begun_at, now)));
  record.set_recorded_at_ns(absl::ToUnixNanos(now));
  record.set_lost_ns(absl::ToInt64Nanoseconds(timeline.lost));
  record.set_event_count(timeline.event_count);
  const size_t skipped_count =
      timeline.events.size() - std::min(timeline.events.size(), kEventsMax);
  for (size_t i = skipped_count; i < timeline.events.size(); ++i) {
    const RunEvent& event = timeline.events[i];
    proto::JournalTimeline::Event* const recorded = record.add_events();
    recorded->set_time_ns(absl::ToUnixNanos(event.time));
    recorded->set_text(event.text);
    recorded->set_cost_ns(absl::ToInt64Nanoseconds(event.cost));
  }
  return record;
}

TimelineStatus TimelineOf(const proto::JournalTimeline& record) {
  TimelineStatus timeline;
  timeline.begun_at = absl::FromUnixNanos(record.begun_at_ns());
  timeline.elapsed =
      absl::FromUnixNanos(record.recorded_at_ns()) - timeline.begun_at;
  timeline.lost = absl::Nanoseconds(record.lost_ns());
  timeline.event_count = record.event_count();
  for (const proto::JournalTimeline::Event& event : record.events()) {
    timeline.events.push_back({.time = absl::FromUnixNanos(event.time_ns()),
                               .text = event.text(),
                               .cost = absl::Nanoseconds(event.cost_ns())});
  }
  return timeline;
}

}  // namespace muster
