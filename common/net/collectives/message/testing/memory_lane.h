#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TESTING_MEMORY_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TESTING_MEMORY_LANE_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/net/collectives/message/lane.h"

namespace muster {

// Returns the two ends of a lane within this process. Each may be used on its
// own thread. Send() copies the payload. It accepts frames until `bytes_max`
// payload bytes wait at the other end, and always one.
std::pair<std::unique_ptr<Lane>, std::unique_ptr<Lane>> MakeMemoryLane(
    size_t bytes_max = size_t{4} << 20);

// Returns lanes between all pairs of `size` ranks: [rank][peer], null if both
// are the same.
std::vector<std::vector<std::unique_ptr<Lane>>> MakeMemoryLanes(int size);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TESTING_MEMORY_LANE_H_
