#ifndef COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/socket_stream.h"

namespace muster {

// Returns a lane over a stream whose handshake is finished. Sets up its socket:
// it is non-blocking, sends small frames at once, and has kernel buffers of
// megabytes, so that each end can continue while the other reduces.
//
// Payloads are sent from the caller's memory and received into the sink's
// memory without a copy, unless the stream is encrypted.
//
// `transport` is what Lane::transport() returns. `silence_timeout` is at least
// a second and at most a day.
std::unique_ptr<Lane> MakeSocketLane(
    std::unique_ptr<SocketStream> stream, std::string transport,
    absl::Duration silence_timeout = kLaneSilenceTimeout);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_SOCKET_LANE_H_
