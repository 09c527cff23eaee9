#ifndef COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_

#include <memory>
#include <string>

#include "common/net/collectives/message/lane.h"

namespace muster {

// A lane over a connected stream socket, TCP or Unix, which it takes over and
// sets up: it does not block, sends small frames at once, and holds megabytes
// in the kernel, so that both ends can go on while the other one reduces.
//
// Payloads leave from where they lie and arrive where the sink wants them.
//
// `transport` is what Lane::transport() says.
std::unique_ptr<Lane> MakeSocketLane(int fd, std::string transport);

// Two ends of a Unix socket within this process.
std::pair<std::unique_ptr<Lane>, std::unique_ptr<Lane>> MakeSocketLanePair();

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_
