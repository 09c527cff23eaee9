#ifndef COMMON_NET_RPC_SEEN_CALLS_H_
#define COMMON_NET_RPC_SEEN_CALLS_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// One call of one channel. Channels have random ids and number their calls from
// 1.
struct CallId {
  uint64_t channel = 0;  // 0: the caller does not number its calls.
  uint64_t number = 0;
};

// Detects calls that arrive more than once: a proxy may retry a call, and a
// network may deliver the data of an old connection late. Remembers the newest
// calls of each channel, in any order. Older calls count as seen.
//
// Equivalent to: the anti-replay window of RFC 4303, 3.4.3.
//
// Thread-safe.
class SeenCalls {
 public:
  // How far the numbers of calls may arrive out of order on a channel.
  static constexpr size_t kWindow = 1 << 13;

  // If there are more channels than `channel_count_max`, forgets the one that
  // was silent for longest.
  explicit SeenCalls(size_t channel_count_max = 1024)
      : channel_count_max_(channel_count_max) {}

  // Adds a call. Returns false if it was added before, or is too old to tell.
  bool Add(const CallId& id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Channel {
    uint64_t id = 0;
    uint64_t newest = 0;
    std::bitset<kWindow> seen;  // The newest numbers, modulo kWindow.
  };
  using Channels = std::list<Channel>;

  Channel& Find(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t channel_count_max_;
  absl::Mutex mutex_;
  Channels channels_ ABSL_GUARDED_BY(mutex_);  // The last one used is first.
  std::unordered_map<uint64_t, Channels::iterator> by_id_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_RPC_SEEN_CALLS_H_
