#include "common/net/collectives/transports/raw_socket_transport.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/lane_listener.h"
#include "common/net/collectives/transports/lane_mesh.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

class Endpoint final : public TransportEndpoint {
 public:
  Endpoint(const GroupPlan* plan, TransportRanks ranks,
           std::unique_ptr<LaneListener> listener)
      : plan_(plan), ranks_(std::move(ranks)), listener_(std::move(listener)) {}

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) override {
    return ConnectByLanes(
        *plan_, ranks_,
        [&](int rank) {
          return ConnectLane(endpoints[rank].lane_address(),
                             endpoints[rank].lane_token(), ranks_.self,
                             plan_->generation, deadline);
        },
        [&](const std::vector<int>& ranks) {
          return listener_->Accept(ranks, plan_->generation, deadline);
        });
  }

 private:
  const GroupPlan* const plan_;
  const TransportRanks ranks_;
  const std::unique_ptr<LaneListener> listener_;
};

}  // namespace

void RawSocketTransport::Offer(const TransportSettings& settings,
                               proto::TransportOffer* offer) const {
  offer->set_raw_sockets(settings.raw_sockets);
}

TransportFit RawSocketTransport::Fit(absl::Span<const RankOffer> offers) const {
  for (const RankOffer& from : offers) {
    if (!from.offer->raw_sockets()) {
      return {false, absl::StrCat("rank ", from.rank, " has --noraw_sockets")};
    }
  }
  return {true, "every task allows them"};
}

absl::StatusOr<std::unique_ptr<TransportEndpoint>> RawSocketTransport::Prepare(
    const TransportContext&, const GroupPlan& plan, TransportRanks ranks,
    proto::ReplicaEndpoint* endpoint) const {
  ASSIGN_OR_RETURN(const HostPort own,
                   ParseHostPort(plan.members[plan.self].address));
  ASSIGN_OR_RETURN(std::unique_ptr<LaneListener> listener,
                   RanksByHost(plan).size() == 1
                       ? LaneListener::ListenUnix()
                       : LaneListener::ListenTcp(own.host));
  endpoint->set_lane_address(listener->address());
  endpoint->set_lane_token(listener->token());
  return std::make_unique<Endpoint>(&plan, std::move(ranks),
                                    std::move(listener));
}

}  // namespace muster
