#include "common/core/system/poll_timeout.h"

#include <algorithm>
#include <cstdint>

namespace muster {

int PollTimeoutMilliseconds(absl::Duration left) {
  constexpr int64_t kMillisecondsMax = 1 << 30;
  if (left == absl::InfiniteDuration()) return -1;
  const int64_t milliseconds =
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  return static_cast<int>(
      std::clamp<int64_t>(milliseconds, 0, kMillisecondsMax));
}

}  // namespace muster
