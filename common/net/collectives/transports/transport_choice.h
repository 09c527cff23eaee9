#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORT_CHOICE_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORT_CHOICE_H_

#include <map>
#include <string>

#include "absl/types/span.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

struct TransportChoice {
  // An entry of kTransports; null if none can be used.
  const Transport* transport = nullptr;
  // "AUTO chose raw sockets because every task allows them; shared memory was
  // left out: the ranks are on 2 hosts". Names every better transport.
  std::string reason;
};

// Returns the first entry of kTransports of `implementation` that fits the
// ranks and has not failed. `offers` has one offer for each task; `failures`
// has the errors of transports that fit but could not connect, by name. A pure
// function.
TransportChoice ChooseTransport(
    CommunicationImplementation implementation,
    absl::Span<const proto::TransportOffer> offers, int replicas_per_task,
    const std::map<std::string, std::string>& failures = {});

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORT_CHOICE_H_
