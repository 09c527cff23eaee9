#include "common/net/collectives/transports/rpc_transport.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/rpc_lane.h"
#include "common/net/collectives/transports/lane_mesh.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

class RpcEndpoint final : public TransportEndpoint {
 public:
  RpcEndpoint(const TransportContext& context, const GroupPlan* plan,
              TransportRanks ranks)
      : context_(context), plan_(plan), ranks_(std::move(ranks)) {}

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint>, absl::Time deadline) override {
    return ConnectByLanes(
        *plan_, ranks_,
        [&](int rank) {
          return OpenRpcLane(ChannelTo(plan_->TaskOf(rank)),
                             LaneKey(ranks_.self, rank), plan_->generation,
                             deadline);
        },
        [&](const std::vector<int>& ranks) { return Accept(ranks, deadline); });
  }

 private:
  absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> Accept(
      const std::vector<int>& ranks, absl::Time deadline) {
    std::map<int, std::unique_ptr<Lane>> lanes;
    for (const int rank : ranks) {
      ASSIGN_OR_RETURN(lanes[rank],
                       context_.rpc_lanes->Accept(LaneKey(rank, ranks_.self),
                                                  plan_->generation, deadline));
    }
    return lanes;
  }

  Channel* ChannelTo(int task) {
    std::unique_ptr<Channel>& channel = channels_[task];
    if (channel == nullptr) {
      const GroupPlan::Member& member = plan_->members[task];
      ChannelOptions options;
      options.address = member.address;
      options.peer_task_type = member.identity.task_type;
      options.peer_task_index = member.identity.task_index;
      options.caller = context_.self;
      options.target_incarnation = member.identity.incarnation;
      options.keepalive =
          std::max(options.keepalive, context_.settings.silence_timeout);
      channel = context_.network->Connect(options);
    }
    return channel.get();
  }

  // Includes both ranks, because one acceptor serves all replicas of the task.
  int LaneKey(int from_rank, int to_rank) const {
    return from_rank * plan_->rank_count() + to_rank;
  }

  const TransportContext context_;
  const GroupPlan* const plan_;
  const TransportRanks ranks_;
  // By task. Replicas do not share channels, because the data of one would
  // delay the others.
  std::map<int, std::unique_ptr<Channel>> channels_;
};

}  // namespace

void RpcTransport::Offer(const TransportSettings&,
                         proto::TransportOffer*) const {}

TransportFit RpcTransport::Fit(absl::Span<const RankOffer>) const {
  return {true, "every task serves it"};
}

absl::StatusOr<std::unique_ptr<TransportEndpoint>> RpcTransport::Prepare(
    const TransportContext& context, const GroupPlan& plan,
    TransportRanks ranks, proto::ReplicaEndpoint*) const {
  return std::make_unique<RpcEndpoint>(context, &plan, std::move(ranks));
}

}  // namespace muster
