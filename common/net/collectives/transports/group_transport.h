#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_GROUP_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_GROUP_TRANSPORT_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/rpc_lane.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/collectives/transports/transport.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"

namespace muster {

// Performs the two steps of a transport, Prepare() and Connect(), for all
// replicas of one task.
//
// Not thread-safe. Must outlive the communicators that it makes.
class GroupTransport {
 public:
  // `network` is borrowed.
  GroupTransport(TaskIdentity self, Network* network,
                 TransportSettings settings = {});
  ~GroupTransport();

  GroupTransport(const GroupTransport&) = delete;
  GroupTransport& operator=(const GroupTransport&) = delete;

  // Adds the methods by which other tasks open lanes. Called before the server
  // starts.
  void AddTo(Service* service);

  // Opens an endpoint for each local replica and closes those of the previous
  // plan, whose communicators no longer exist. Returns the descriptions that
  // other tasks need to connect to them, by local replica. Errors are those of
  // Transport::Prepare().
  absl::StatusOr<std::vector<proto::ReplicaEndpoint>> Prepare(
      const GroupPlan& plan);

  // Connects to the other tasks, which call this function, too. `endpoints` has
  // the endpoints of all ranks, by rank. Returns the communicators by local
  // replica.
  //   kInvalidArgument  the number of endpoints is not the number of ranks
  //   and those of TransportEndpoint::Connect()
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints, absl::Time deadline);

 private:
  RpcLaneAcceptor rpc_lanes_;
  const TransportContext context_;
  GroupPlan plan_;
  std::vector<std::unique_ptr<TransportEndpoint>> endpoints_;  // By replica.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_GROUP_TRANSPORT_H_
