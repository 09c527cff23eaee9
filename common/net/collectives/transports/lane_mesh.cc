#include "common/net/collectives/transports/lane_mesh.h"

#include <utility>

#include "common/core/base/status_macros.h"
#include "common/net/collectives/message/message_communicator.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Communicator>> ConnectByLanes(
    const GroupPlan& plan, const TransportRanks& ranks,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Lane>>(int rank)> open,
    absl::FunctionRef<absl::StatusOr<std::map<int, std::unique_ptr<Lane>>>(
        const std::vector<int>& ranks)>
        accept) {
  MessageGroup group;
  group.rank = ranks.IndexOf(ranks.self);
  group.generation = plan.generation;
  group.lanes.resize(ranks.size());
  group.rank_names = ranks.ranks;
  for (int i = 0; i < group.rank; ++i) {
    ASSIGN_OR_RETURN(group.lanes[i], open(ranks.ranks[i]));
  }
  const std::vector<int> higher(ranks.ranks.begin() + group.rank + 1,
                                ranks.ranks.end());
  ASSIGN_OR_RETURN(auto accepted, accept(higher));
  for (auto& [rank, lane] : accepted) {
    group.lanes[ranks.IndexOf(rank)] = std::move(lane);
  }
  return MakeMessageCommunicator(std::move(group));
}

}  // namespace muster
