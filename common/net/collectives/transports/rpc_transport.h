#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_RPC_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_RPC_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// gRPC streams between the servers of the tasks. Slower than raw sockets, but
// available in every task. See message/rpc_lane.h.
class RpcTransport final : public Transport {
 public:
  std::string name() const override { return "gRPC"; }
  bool leaves_processor_idle() const override { return true; }
  void Offer(const TransportSettings& settings,
             proto::TransportOffer* offer) const override;
  TransportFit Fit(absl::Span<const RankOffer> offers) const override;
  absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const override;
};

inline constexpr RpcTransport kRpcTransport;

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_RPC_TRANSPORT_H_
