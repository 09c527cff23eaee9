#ifndef COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/socket_stream.h"

namespace muster {

// Returns a lane over a stream whose handshake is finished. Sets up its socket:
// it does not block, sends small frames at once, and has kernel buffers of
// megabytes, so that both ends can continue while the other one reduces.
//
// Payloads are sent from where they are and received where the sink wants them;
// encryption copies them.
//
// `transport` is what Lane::transport() returns. `silence_timeout` is at least
// a second and at most a day.
std::unique_ptr<Lane> MakeSocketLane(
    std::unique_ptr<SocketStream> stream, std::string transport,
    absl::Duration silence_timeout = kLaneSilenceTimeout);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_
