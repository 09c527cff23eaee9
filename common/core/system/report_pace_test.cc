#include <vector>

#include "absl/time/time.h"
#include "common/core/system/wait_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

// Returns the seconds at which lines are due if IsDue() is called each second.
std::vector<int> DueSeconds(absl::Duration interval, int count) {
  const absl::Time start = absl::UnixEpoch();
  ReportPace pace(start, interval);
  std::vector<int> seconds;
  for (int second = 0; static_cast<int>(seconds.size()) < count; ++second) {
    const absl::Time now = start + absl::Seconds(second);
    const bool is_due = now >= pace.next();
    EXPECT_EQ(pace.IsDue(now), is_due);
    if (is_due) seconds.push_back(second);
  }
  return seconds;
}

TEST(ReportPaceTest, IntervalsGrowUpToAMinute) {
  EXPECT_THAT(DueSeconds(absl::Seconds(5), 7),
              ElementsAre(5, 10, 20, 40, 80, 140, 200));
}

TEST(ReportPaceTest, ALongIntervalStays) {
  EXPECT_THAT(DueSeconds(absl::Minutes(2), 3), ElementsAre(120, 240, 360));
}

}  // namespace
}  // namespace muster
