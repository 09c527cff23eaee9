#ifndef COMMON_CORE_SYSTEM_DURATION_HISTOGRAM_H_
#define COMMON_CORE_SYSTEM_DURATION_HISTOGRAM_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// Computes percentiles of any number of durations in a fixed amount of memory.
// Buckets grow by 2%, so a percentile is accurate to 1%. Durations below 100 ns
// count as 100 ns, and those above the last bucket, about 30 hours, count in
// that bucket. Not thread-safe.
class DurationHistogram {
 public:
  // Adds `duration` `count` times.
  void Add(absl::Duration duration, int64_t count = 1);

  int64_t count() const { return count_; }
  absl::Duration total() const { return total_; }
  // Returns the duration that `percent` of the durations do not exceed; zero if
  // there are none.
  absl::Duration Percentile(double percent) const;

 private:
  static constexpr int kBucketCount = 1400;

  std::array<int64_t, kBucketCount> buckets_{};
  int64_t count_ = 0;
  absl::Duration total_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_DURATION_HISTOGRAM_H_
