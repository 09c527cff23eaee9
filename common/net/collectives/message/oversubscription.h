#ifndef COMMON_NET_COLLECTIVES_MESSAGE_OVERSUBSCRIPTION_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_OVERSUBSCRIPTION_H_

#include <memory>
#include <vector>

#include "common/net/collectives/message/lane.h"

namespace muster {

// Returns true if a rank with these lanes (null for itself) must not spin,
// because spinning takes the processor from the ranks for which it waits, or
// from the threads that serve a lane without a descriptor.
bool IsOversubscribed(const std::vector<std::unique_ptr<Lane>>& lanes);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_OVERSUBSCRIPTION_H_
