#ifndef COMMON_NET_COLLECTIVES_MESSAGE_ABORT_LANES_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_ABORT_LANES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/collectives/message/lane.h"

namespace muster {

// A lane to leave by.
struct Leaving {
  Lane* lane = nullptr;
  // The frame whose sending was begun; null when there is none.
  OutgoingFrame* unfinished = nullptr;
};

// Sends an abort with `status` over every lane, after the frame that is under
// way there, and takes meanwhile what comes, since the other end may be stuck
// in the same way. Gives up after `timeout` on those that do not move. Closes
// the lanes. `waker` is theirs.
void AbortLanes(std::vector<Leaving> lanes, uint64_t generation,
                uint64_t sequence, const absl::Status& status,
                absl::Duration timeout, LaneWaker& waker);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_ABORT_LANES_H_
