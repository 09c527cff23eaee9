#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TESTING_MEMORY_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TESTING_MEMORY_LANE_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/net/collectives/message/lane.h"

namespace muster {

// Two ends of a lane within this process; each may be on its own thread. A
// frame's payload is copied once, on its way in. An end takes frames until
// `bytes_max` wait at the other one.
std::pair<std::unique_ptr<Lane>, std::unique_ptr<Lane>> MakeMemoryLane(
    size_t bytes_max = size_t{4} << 20);

// A lane between any two of `size` ranks: [rank][peer], null where they are the
// same.
std::vector<std::vector<std::unique_ptr<Lane>>> MakeMemoryLanes(int size);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TESTING_MEMORY_LANE_H_
