#ifndef COMMON_CORE_SYSTEM_DURATION_HISTOGRAM_H_
#define COMMON_CORE_SYSTEM_DURATION_HISTOGRAM_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// Percentiles of any number of durations in a fixed amount of memory. Buckets
// grow by 2%, so a percentile is right within 1%. From 100 ns to a day; what
// lies outside counts as the end it lies behind. Not thread-safe.
class DurationHistogram {
 public:
  // Adds `duration` `count` times.
  void Add(absl::Duration duration, int64_t count = 1);

  int64_t count() const { return count_; }
  absl::Duration total() const { return total_; }
  // The duration that `percent` of them do not exceed; zero when empty.
  absl::Duration Percentile(double percent) const;

 private:
  static constexpr int kBucketCount = 1400;

  std::array<int64_t, kBucketCount> buckets_{};
  int64_t count_ = 0;
  absl::Duration total_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_DURATION_HISTOGRAM_H_
