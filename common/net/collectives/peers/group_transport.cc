#include "common/net/collectives/peers/group_transport.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/message/two_level_communicator.h"
#include "common/net/collectives/peers/transport_choice.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/fault_point.h"

namespace muster {
namespace {

int IndexOf(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) -
                          ranks.begin());
}

absl::StatusOr<std::unique_ptr<Communicator>> CommunicatorOfOne(
    uint64_t generation) {
  ASSIGN_OR_RETURN(auto group, CreateLocalGroup(1, {.generation = generation}));
  return std::move(group[0]);
}

}  // namespace

GroupTransport::GroupTransport(TaskIdentity self, Network* network)
    : self_(std::move(self)), network_(network) {}

GroupTransport::~GroupTransport() = default;

void GroupTransport::AddTo(Service* service) { acceptor_.AddTo(service); }

absl::StatusOr<std::vector<proto::ReplicaEndpoint>> GroupTransport::Prepare(
    const GroupPlan& plan) {
  plan_ = plan;
  replicas_.clear();
  channels_.clear();
  acceptor_.StartGeneration(plan.generation);
  const proto::TransportPlan::Kind kind = plan.transport.kind();
  const bool shares_memory = kind == proto::TransportPlan::SHARED_MEMORY ||
                             kind == proto::TransportPlan::TWO_LEVEL;
  const bool is_one_host = RanksByHost().size() == 1;
  std::vector<proto::ReplicaEndpoint> endpoints;
  for (int i = 0; i < plan.replicas_per_task; ++i) {
    Replica replica;
    replica.rank = plan.self * plan.replicas_per_task + i;
    proto::ReplicaEndpoint endpoint;
    if (shares_memory && plan.members.size() > 1) {
      ASSIGN_OR_RETURN(replica.shared_memory, SharedMemoryEndpoint::Listen());
      endpoint.set_shared_memory(replica.shared_memory->address());
    }
    if (plan.transport.raw_sockets()) {
      ASSIGN_OR_RETURN(const HostPort own,
                       ParseHostPort(plan.members[plan.self].address));
      ASSIGN_OR_RETURN(replica.listener,
                       is_one_host ? LaneListener::ListenUnix()
                                   : LaneListener::ListenTcp(own.host));
      endpoint.set_lane_address(replica.listener->address());
      endpoint.set_lane_token(replica.listener->token());
    }
    replicas_.push_back(std::move(replica));
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>>
GroupTransport::Connect(const std::vector<proto::ReplicaEndpoint>& endpoints,
                        absl::Time deadline) {
  const int replica_count = plan_.replicas_per_task;
  if (static_cast<int>(endpoints.size()) != plan_.rank_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", plan_.rank_count(), " ranks was given ",
                     endpoints.size(), " endpoints"));
  }
  RETURN_IF_ERROR(FaultPoint("peers.connect"));
  if (plan_.members.size() == 1) {
    return CreateLocalGroup(replica_count, {.generation = plan_.generation});
  }
  channels_.resize(replica_count);
  for (auto& to_tasks : channels_) to_tasks.resize(plan_.members.size());
  // Replicas of one process wait for each other, too.
  std::vector<absl::StatusOr<std::unique_ptr<Communicator>>> results(
      replica_count);
  std::vector<std::thread> threads;
  for (int i = 0; i < replica_count; ++i) {
    threads.emplace_back([&, i] {
      results[i] = ConnectReplica(&replicas_[i], endpoints, deadline);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (auto& result : results) {
    RETURN_IF_ERROR(result.status());
    communicators.push_back(*std::move(result));
  }
  return communicators;
}

absl::StatusOr<std::unique_ptr<Communicator>> GroupTransport::ConnectReplica(
    Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
    absl::Time deadline) {
  std::vector<int> all_ranks(plan_.rank_count());
  for (size_t i = 0; i < all_ranks.size(); ++i) {
    all_ranks[i] = static_cast<int>(i);
  }
  switch (plan_.transport.kind()) {
    case proto::TransportPlan::SHARED_MEMORY:
      return ConnectSharedMemory(replica, endpoints, all_ranks, deadline);
    case proto::TransportPlan::TWO_LEVEL:
      return ConnectTwoLevel(replica, endpoints, deadline);
    case proto::TransportPlan::MESSAGES:
      return ConnectMessages(replica, endpoints, all_ranks, deadline);
    default:
      return absl::InvalidArgumentError(
          "the leader chose a transport that this version does not know");
  }
}

absl::StatusOr<std::unique_ptr<Communicator>>
GroupTransport::ConnectSharedMemory(
    Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
    const std::vector<int>& ranks, absl::Time deadline) {
  if (ranks.size() == 1) return CommunicatorOfOne(plan_.generation);
  SharedMemoryGroupOptions options;
  options.rank = IndexOf(ranks, replica->rank);
  options.size = static_cast<int>(ranks.size());
  options.generation = plan_.generation;
  for (const int rank : ranks) {
    options.addresses.push_back(endpoints[rank].shared_memory());
  }
  options.token = absl::StrCat(absl::Hex(plan_.token, absl::kZeroPad16));
  options.timeout = deadline - Clock::Real()->Now();
  return ConnectSharedMemoryGroup(std::move(replica->shared_memory), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> GroupTransport::ConnectMessages(
    Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
    const std::vector<int>& ranks, absl::Time deadline) {
  const int own_index = IndexOf(ranks, replica->rank);
  MessageGroup group;
  group.rank = own_index;
  group.generation = plan_.generation;
  group.lanes.resize(ranks.size());
  for (int i = 0; i < own_index; ++i) {
    ASSIGN_OR_RETURN(group.lanes[i], OpenLane(*replica, ranks[i],
                                              endpoints[ranks[i]], deadline));
  }
  const std::vector<int> higher(ranks.begin() + own_index + 1, ranks.end());
  std::map<int, std::unique_ptr<Lane>> accepted;
  if (replica->listener != nullptr) {
    ASSIGN_OR_RETURN(accepted, replica->listener->Accept(
                                   higher, plan_.generation, deadline));
  } else {
    for (const int rank : higher) {
      ASSIGN_OR_RETURN(accepted[rank], AcceptRpcLane(*replica, rank, deadline));
    }
  }
  for (auto& [rank, lane] : accepted) {
    group.lanes[IndexOf(ranks, rank)] = std::move(lane);
  }
  return MakeMessageCommunicator(std::move(group));
}

absl::StatusOr<std::unique_ptr<Communicator>> GroupTransport::ConnectTwoLevel(
    Replica* replica, const std::vector<proto::ReplicaEndpoint>& endpoints,
    absl::Time deadline) {
  TwoLevelGroup group;
  group.rank = replica->rank;
  group.hosts = RanksByHost();
  const auto own = std::find_if(
      group.hosts.begin(), group.hosts.end(), [&](const auto& ranks) {
        return IndexOf(ranks, replica->rank) < static_cast<int>(ranks.size());
      });
  const int place = IndexOf(*own, replica->rank);
  ASSIGN_OR_RETURN(group.local,
                   ConnectSharedMemory(replica, endpoints, *own, deadline));
  const bool is_even = std::all_of(
      group.hosts.begin(), group.hosts.end(),
      [&](const auto& ranks) { return ranks.size() == own->size(); });
  if (is_even || place == 0) {
    std::vector<int> across;
    for (const auto& ranks : group.hosts) across.push_back(ranks[place]);
    ASSIGN_OR_RETURN(group.across,
                     ConnectMessages(replica, endpoints, across, deadline));
  }
  return MakeTwoLevelCommunicator(std::move(group));
}

absl::StatusOr<std::unique_ptr<Lane>> GroupTransport::OpenLane(
    const Replica& replica, int to_rank, const proto::ReplicaEndpoint& endpoint,
    absl::Time deadline) {
  if (replica.listener != nullptr) {
    return ConnectLane(endpoint.lane_address(), endpoint.lane_token(),
                       replica.rank, plan_.generation, deadline);
  }
  const int task = to_rank / plan_.replicas_per_task;
  std::unique_ptr<Channel>& channel =
      channels_[replica.rank % plan_.replicas_per_task][task];
  if (channel == nullptr) {
    const GroupPlan::Member& member = plan_.members[task];
    ChannelOptions options;
    options.address = member.address;
    options.peer_task_type = member.identity.task_type;
    options.peer_task_index = member.identity.task_index;
    options.caller = self_;
    options.target_incarnation = member.identity.incarnation;
    channel = network_->Connect(options);
  }
  return OpenRpcLane(channel.get(), LaneKey(replica.rank, to_rank),
                     plan_.generation, deadline);
}

absl::StatusOr<std::unique_ptr<Lane>> GroupTransport::AcceptRpcLane(
    const Replica& replica, int from_rank, absl::Time deadline) {
  return acceptor_.Accept(LaneKey(from_rank, replica.rank), plan_.generation,
                          deadline);
}

// One acceptor serves all replicas of the task.
int GroupTransport::LaneKey(int from_rank, int to_rank) const {
  return from_rank * plan_.rank_count() + to_rank;
}

std::vector<std::vector<int>> GroupTransport::RanksByHost() const {
  std::vector<std::string> hosts;
  for (const GroupPlan::Member& member : plan_.members) {
    hosts.insert(hosts.end(), plan_.replicas_per_task, member.host);
  }
  return GroupByHost(hosts);
}

}  // namespace muster
