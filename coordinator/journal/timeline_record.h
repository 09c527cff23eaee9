#ifndef COORDINATOR_JOURNAL_TIMELINE_RECORD_H_
#define COORDINATOR_JOURNAL_TIMELINE_RECORD_H_

#include "absl/time/time.h"
#include "common/net/status/status_report.h"

namespace muster {
namespace proto {
class JournalTimeline;
}  // namespace proto

// Returns the record of a timeline, with its newest 100 events at most.
proto::JournalTimeline RecordOfTimeline(const TimelineStatus& timeline,
                                        absl::Time now);

// Returns the timeline at the time of the record.
TimelineStatus TimelineOf(const proto::JournalTimeline& record);

}  // namespace muster

#endif  // COORDINATOR_JOURNAL_TIMELINE_RECORD_H_
