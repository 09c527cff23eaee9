#ifndef COMMON_NET_COLLECTIVES_MESSAGE_ABORT_LANES_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_ABORT_LANES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/collectives/message/lane.h"

namespace muster {

// A lane over which to send an abort.
struct AbortTarget {
  Lane* lane = nullptr;
  // A frame that is partly sent, or null.
  OutgoingFrame* unfinished = nullptr;
};

// Sends an abort with `status` over every lane, after the frame that is partly
// sent there. Meanwhile receives and discards frames, because the peer may be
// blocked by its own sends. Gives up after `timeout`. Closes the lanes. `waker`
// is the waker of all lanes.
void AbortLanes(std::vector<AbortTarget> lanes, uint64_t generation,
                uint64_t sequence, const absl::Status& status,
                absl::Duration timeout, LaneWaker& waker);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_ABORT_LANES_H_
