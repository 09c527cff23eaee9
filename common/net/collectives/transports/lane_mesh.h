#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_LANE_MESH_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_LANE_MESH_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// Opens a lane to every lower rank, accepts one from every higher rank, and
// returns a communicator over them. `open` and `accept` take ranks of the plan.
// Errors are those of `open` and `accept`.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectByLanes(
    const GroupPlan& plan, const TransportRanks& ranks,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Lane>>(int rank)> open,
    absl::FunctionRef<absl::StatusOr<std::map<int, std::unique_ptr<Lane>>>(
        const std::vector<int>& ranks)>
        accept);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_LANE_MESH_H_
