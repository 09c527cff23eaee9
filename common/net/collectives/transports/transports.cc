#include "common/net/collectives/transports/transports.h"

#include <algorithm>
#include <iterator>

#include "common/net/rpc/local_endpoint.h"
#include "proto/peer_group.pb.h"

namespace muster {
const Transport* FindTransport(absl::string_view name) {
  const auto found = std::find_if(
      std::begin(kTransports), std::end(kTransports),
      [name](const Transport* transport) { return transport->name() == name; });
  return found == std::end(kTransports) ? nullptr : *found;
}

proto::TransportOffer OfferTransports(const TransportSettings& settings) {
  proto::TransportOffer offer;
  offer.set_host(settings.host.empty() ? HostIdentity() : settings.host);
  for (const Transport* const transport : kTransports) {
    transport->Offer(settings, &offer);
  }
  return offer;
}

}  // namespace muster
