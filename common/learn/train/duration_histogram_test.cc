#include "common/learn/train/duration_histogram.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(DurationHistogramTest, KnowsPercentilesWithinOnePercent) {
  DurationHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Add(absl::Milliseconds(i));
  EXPECT_EQ(histogram.count(), 1000);
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 100.0}) {
    EXPECT_NEAR(absl::ToDoubleMilliseconds(histogram.Percentile(percent)),
                10 * percent, 0.11 * percent)
        << percent;
  }
}

TEST(DurationHistogramTest, PutsWhatIsTooShortOrTooLongAtTheEnds) {
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
