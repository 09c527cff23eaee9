#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_TWO_LEVEL_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_TWO_LEVEL_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// Composes two transports: one within each host and one between hosts. For
// groups on several hosts, of which at least one has several ranks. See
// message/two_level_communicator.h.
class TwoLevelTransport final : public Transport {
 public:
  // Both are borrowed. They must use different fields of the endpoint.
  constexpr TwoLevelTransport(const Transport* within, const Transport* across)
      : within_(within), across_(across) {}

  std::string name() const override;
  bool leaves_processor_idle() const override;
  // Offers nothing, because both parts are entries of kTransports, which make
  // their own offers.
  void Offer(const TransportSettings& settings,
             proto::TransportOffer* offer) const override;
  TransportFit Fit(absl::Span<const RankOffer> offers) const override;
  absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const override;

 private:
  const Transport* const within_;
  const Transport* const across_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_TWO_LEVEL_TRANSPORT_H_
