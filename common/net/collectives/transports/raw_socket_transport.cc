#include "common/net/collectives/transports/raw_socket_transport.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/lane_listener.h"
#include "common/net/collectives/transports/lane_mesh.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

class RawSocketEndpoint final : public TransportEndpoint {
 public:
  RawSocketEndpoint(const GroupPlan* plan, TransportRanks ranks,
                    const TransportSettings& settings,
                    std::unique_ptr<LaneListener> listener)
      : plan_(plan),
        ranks_(std::move(ranks)),
        encrypts_(settings.encrypts_raw_sockets),
        silence_timeout_(settings.silence_timeout),
        listener_(std::move(listener)) {}

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) override {
    absl::StatusOr<std::unique_ptr<Communicator>> communicator = ConnectByLanes(
        *plan_, ranks_,
        [&](int rank) { return Open(endpoints[rank], rank, deadline); },
        [&](const std::vector<int>& ranks) {
          return listener_->Accept(ranks, plan_->generation, deadline);
        });
    // All ranks have connected, or this has failed. Closes the port while the
    // group works.
    listener_ = nullptr;
    return communicator;
  }

 private:
  absl::StatusOr<std::unique_ptr<Lane>> Open(
      const proto::ReplicaEndpoint& endpoint, int rank,
      absl::Time deadline) const {
    if (encrypts_ && !IsLaneAddressProtected(endpoint.lane_address())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "rank ", rank, " offers raw sockets in plaintext at ",
          endpoint.lane_address(), ", and this task has a certificate"));
    }
    return ConnectLane(endpoint.lane_address(), endpoint.lane_token(),
                       ranks_.self, plan_->generation, deadline,
                       silence_timeout_);
  }

  const GroupPlan* const plan_;
  const TransportRanks ranks_;
  const bool encrypts_;
  const absl::Duration silence_timeout_;
  std::unique_ptr<LaneListener> listener_;
};

absl::StatusOr<std::unique_ptr<LaneListener>> Listen(
    const TransportSettings& settings, const GroupPlan& plan, int rank) {
  if (RanksByHost(plan).size() == 1) return LaneListener::ListenUnix();
  ASSIGN_OR_RETURN(const HostPort own,
                   ParseHostPort(plan.members[plan.self].address));
  const int replica = rank % plan.replicas_per_task;
  return LaneListener::ListenTcp(
      own.host,
      {.port = settings.lane_port == 0 ? 0 : settings.lane_port + replica,
       .encrypts = settings.encrypts_raw_sockets,
       .silence_timeout = settings.silence_timeout});
}

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
    const TransportContext& context, const GroupPlan& plan,
    TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const {
  ASSIGN_OR_RETURN(std::unique_ptr<LaneListener> listener,
                   Listen(context.settings, plan, ranks.self));
  endpoint->set_lane_address(listener->address());
  endpoint->set_lane_token(listener->token());
  return std::make_unique<RawSocketEndpoint>(
      &plan, std::move(ranks), context.settings, std::move(listener));
}

}  // namespace muster
