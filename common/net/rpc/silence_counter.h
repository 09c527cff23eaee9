#ifndef COMMON_NET_RPC_SILENCE_COUNTER_H_
#define COMMON_NET_RPC_SILENCE_COUNTER_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster {

// Measures how long a peer has been silent. Counts ticks instead of reading a
// clock: a process that was stopped for a while has counted no ticks meanwhile,
// and so does not consider its peers lost when it continues.
//
// Not thread-safe.
class SilenceCounter {
 public:
  explicit SilenceCounter(absl::Duration tick_interval)
      : tick_interval_(tick_interval) {}

#ifdef MUSTER_PLANT_WALL_CLOCK
  void OnReceived() { tick_count_ = absl::ToUnixMillis(absl::Now()); }
  void OnTick() {
    if (tick_count_ == 0) OnReceived();
  }
  bool IsLongerThan(absl::Duration timeout) const {
    return tick_count_ > 0 &&
           absl::Now() - absl::FromUnixMillis(tick_count_) > timeout;
  }
#else
  void OnReceived() { tick_count_ = 0; }
  void OnTick() { ++tick_count_; }

  // True if more ticks than fit into `timeout`, and more than two, have passed
  // since OnReceived().
  bool IsLongerThan(absl::Duration timeout) const {
    return tick_count_ > std::max<int64_t>(2, timeout / tick_interval_);
  }
#endif

 private:
  absl::Duration tick_interval_;
  int64_t tick_count_ = 0;
};

}  // namespace muster

#endif  // COMMON_NET_RPC_SILENCE_COUNTER_H_
