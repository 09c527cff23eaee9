#include "common/core/system/duration_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/time/time.h"

namespace muster {
namespace {

constexpr double kLeastSeconds = 1e-7;
constexpr double kGrowth = 1.02;

}  // namespace

void DurationHistogram::Add(absl::Duration duration, int64_t count) {
  const double seconds =
      std::max(absl::ToDoubleSeconds(duration), kLeastSeconds);
  const double bucket = std::log(seconds / kLeastSeconds) / std::log(kGrowth);
  buckets_[std::min<int64_t>(std::llround(std::min(bucket, 1e6)),
                             kBucketCount - 1)] += count;
  count_ += count;
  total_ += duration * count;
}

absl::Duration DurationHistogram::Percentile(double percent) const {
  const double wanted = percent / 100 * static_cast<double>(count_);
  int64_t seen = 0;
  for (int bucket = 0; bucket < kBucketCount; ++bucket) {
    seen += buckets_[bucket];
    const bool is_enough = seen > 0 && static_cast<double>(seen) >= wanted;
    if (is_enough) {
      return absl::Seconds(kLeastSeconds * std::pow(kGrowth, bucket));
    }
  }
  return absl::ZeroDuration();
}

}  // namespace muster
