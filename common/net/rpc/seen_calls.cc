#include "common/net/rpc/seen_calls.h"

namespace muster {

bool SeenCalls::Add(const CallId& id) {
#ifdef MUSTER_PLANT_NO_SEEN_CALLS
  return true;
#endif
  if (id.channel == 0) return true;
  absl::MutexLock lock(&mutex_);
  Channel& channel = Find(id.channel);
  if (id.number > channel.newest) {
    if (id.number - channel.newest >= kWindow) {
      channel.seen.reset();
    } else {
      while (channel.newest < id.number) {
        channel.seen.reset(++channel.newest % kWindow);
      }
    }
    channel.newest = id.number;
  } else if (channel.newest - id.number >= kWindow ||
             channel.seen.test(id.number % kWindow)) {
    return false;
  }
  channel.seen.set(id.number % kWindow);
  return true;
}

SeenCalls::Channel& SeenCalls::Find(uint64_t id) {
  const auto found = by_id_.find(id);
  if (found != by_id_.end()) {
    channels_.splice(channels_.begin(), channels_, found->second);
    return channels_.front();
  }
  if (channels_.size() >= channel_count_max_) {
    by_id_.erase(channels_.back().id);
    channels_.pop_back();
  }
  channels_.emplace_front().id = id;
  by_id_[id] = channels_.begin();
  return channels_.front();
}

}  // namespace muster
