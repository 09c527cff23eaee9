#ifndef COMMON_NET_COLLECTIVES_MESSAGE_OVERSUBSCRIPTION_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_OVERSUBSCRIPTION_H_

#include <memory>
#include <vector>

#include "common/net/collectives/message/lane.h"

namespace muster {

// True if a rank with these lanes, null for itself, takes the processor from
// those whom it waits for when it spins: from other ranks, or from the threads
// that move a lane without a descriptor.
bool IsOversubscribed(const std::vector<std::unique_ptr<Lane>>& lanes);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_OVERSUBSCRIPTION_H_
