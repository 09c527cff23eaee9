#ifndef COMMON_CORE_BASE_BACKOFF_H_
#define COMMON_CORE_BASE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

struct BackoffOptions {
  absl::Duration initial = absl::Milliseconds(20);
  absl::Duration maximum = absl::Seconds(1);
  double multiplier = 1.6;
  // A delay is drawn from [delay * (1 - jitter), delay].
  double jitter = 0.2;
};

// Returns how long to wait before attempt `attempt` (the first retry is 1). A
// pure function: the same seed draws the same delays.
absl::Duration BackoffDelay(const BackoffOptions& options, int attempt,
                            uint64_t seed);

}  // namespace muster

#endif  // COMMON_CORE_BASE_BACKOFF_H_
