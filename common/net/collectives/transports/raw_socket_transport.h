#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_RAW_SOCKET_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_RAW_SOCKET_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// Sockets between all pairs of ranks. If all ranks of the plan are on one host,
// they are Unix sockets. Otherwise they are TCP sockets, encrypted if the
// network of the tasks is. See message/lane_listener.h.
class RawSocketTransport final : public Transport {
 public:
  std::string name() const override { return "raw sockets"; }
  bool leaves_processor_idle() const override { return true; }
  void Offer(const TransportSettings& settings,
             proto::TransportOffer* offer) const override;
  TransportFit Fit(absl::Span<const RankOffer> offers) const override;
  absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const override;
};

inline constexpr RawSocketTransport kRawSocketTransport;

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_RAW_SOCKET_TRANSPORT_H_
