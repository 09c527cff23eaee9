#ifndef COMMON_CORE_SYSTEM_POLL_TIMEOUT_H_
#define COMMON_CORE_SYSTEM_POLL_TIMEOUT_H_

#include "absl/time/time.h"

namespace muster {

// Returns the timeout for poll() and epoll_wait() that waits for at least
// `left`, so that a deadline has passed when the call times out: whole
// milliseconds, rounded up, at most 12 days. 0 if no time is left, -1 (no
// timeout) for absl::InfiniteDuration().
int PollTimeoutMilliseconds(absl::Duration left);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_POLL_TIMEOUT_H_
