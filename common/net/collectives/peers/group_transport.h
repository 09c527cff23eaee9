#ifndef COMMON_NET_COLLECTIVES_PEERS_GROUP_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_PEERS_GROUP_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/lane_listener.h"
#include "common/net/collectives/message/rpc_lane.h"
#include "common/net/collectives/shm/shared_memory_endpoint.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "proto/peer_group.pb.h"

namespace muster {

// A group that is being formed, as one task sees it.
struct GroupPlan {
  uint64_t generation = 0;
  uint64_t token = 0;
  proto::TransportPlan transport;
  struct Member {
    TaskIdentity identity;
    std::string address;
    std::string host;
  };
  std::vector<Member> members;  // By rank of the task.
  int self = 0;
  int replicas_per_task = 1;

  int rank_count() const {
    return static_cast<int>(members.size()) * replicas_per_task;
  }
};

// Builds the communicators of a task's replicas once their group is decided.
// Two steps, between which the tasks tell each other their endpoints.
//
// Not thread-safe. Outlives the communicators that it made.
class GroupTransport {
 public:
  // `network` is borrowed.
  GroupTransport(TaskIdentity self, Network* network);
  ~GroupTransport();

  GroupTransport(const GroupTransport&) = delete;
  GroupTransport& operator=(const GroupTransport&) = delete;

  // Adds the methods by which others open lanes.
  void AddTo(Service* service);

  // Opens an endpoint for each local replica, and forgets those of an earlier
  // plan. Communicators of an earlier plan are gone by now.
  //   kUnavailable, kResourceExhausted  the system gives no socket
  //   kInvalidArgument                  this task's address is none of this
  //                                     machine's
  absl::StatusOr<std::vector<proto::ReplicaEndpoint>> Prepare(
      const GroupPlan& plan);

  // `endpoints` of all ranks. Waits for the others, who do the same.
  //   kDeadlineExceeded  names the ranks that have not come
  //   and what the transports say of endpoints that cannot be reached
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      const std::vector<proto::ReplicaEndpoint>& endpoints,
      absl::Time deadline);

 private:
  // What one local replica holds between the two steps.
  struct Replica {
    int rank = 0;
    std::unique_ptr<SharedMemoryEndpoint> shared_memory;
    std::unique_ptr<LaneListener> listener;
  };

  absl::StatusOr<std::unique_ptr<Communicator>> ConnectReplica(
      Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
      absl::Time deadline);
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectSharedMemory(
      Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
      const std::vector<int>& ranks, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectMessages(
      Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
      const std::vector<int>& ranks, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectTwoLevel(
      Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
      absl::Time deadline);
  absl::StatusOr<std::unique_ptr<Lane>> OpenLane(
      const Replica& replica, int to_rank,
      const proto::ReplicaEndpoint& endpoint, absl::Time deadline);
  absl::StatusOr<std::unique_ptr<Lane>> AcceptRpcLane(const Replica& replica,
                                                      int from_rank,
                                                      absl::Time deadline);
  int LaneKey(int from_rank, int to_rank) const;
  std::vector<std::vector<int>> RanksByHost() const;

  const TaskIdentity self_;
  Network* const network_;
  RpcLaneAcceptor acceptor_;
  GroupPlan plan_;
  std::vector<Replica> replicas_;
  // By local replica and task: bulk of one lane does not hold up another.
  std::vector<std::vector<std::unique_ptr<Channel>>> channels_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_GROUP_TRANSPORT_H_
