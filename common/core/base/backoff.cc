#include "common/core/base/backoff.h"

#include <algorithm>

#include "common/core/base/check.h"
#include "common/core/base/random.h"

namespace muster {

absl::Duration BackoffDelay(const BackoffOptions& options, int attempt,
                            uint64_t seed) {
  MUSTER_CHECK(attempt >= 1);
  absl::Duration delay = options.initial;
  for (int i = 1; i < attempt && delay < options.maximum; ++i) {
    delay *= options.multiplier;
  }
  delay = std::min(delay, options.maximum);
  const float unit = UnitFloat(Philox(seed, static_cast<uint64_t>(attempt))[0]);
  return delay * (1.0 - options.jitter * unit);
}

}  // namespace muster
