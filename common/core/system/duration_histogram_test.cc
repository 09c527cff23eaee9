#include "common/core/system/duration_histogram.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(DurationHistogramTest, PercentilesAreAccurateToOnePercent) {
  DurationHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Add(absl::Milliseconds(i));
  EXPECT_EQ(histogram.count(), 1000);
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 100.0}) {
    EXPECT_NEAR(absl::ToDoubleMilliseconds(histogram.Percentile(percent)),
                10 * percent, 0.11 * percent)
        << percent;
  }
}

TEST(DurationHistogramTest, CountsADurationThatIsAddedSeveralTimes) {
  DurationHistogram histogram;
  histogram.Add(absl::Milliseconds(1), 3);
  histogram.Add(absl::Seconds(1));
  EXPECT_EQ(histogram.count(), 4);
  EXPECT_EQ(histogram.total(), absl::Milliseconds(1003));
  EXPECT_LT(histogram.Percentile(75), absl::Milliseconds(2));
  EXPECT_GT(histogram.Percentile(76), absl::Milliseconds(900));
}

TEST(DurationHistogramTest, ClampsDurationsToTheRange) {
  DurationHistogram histogram;
  histogram.Add(-absl::Seconds(1));
  histogram.Add(absl::InfiniteDuration());
  EXPECT_LT(histogram.Percentile(50), absl::Microseconds(1));
  EXPECT_GT(histogram.Percentile(100), absl::Hours(24));
}

TEST(DurationHistogramTest, IsZeroWhenEmpty) {
  EXPECT_EQ(DurationHistogram().Percentile(50), absl::ZeroDuration());
}

}  // namespace
}  // namespace muster
