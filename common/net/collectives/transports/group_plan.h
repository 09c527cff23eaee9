#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_GROUP_PLAN_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_GROUP_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/net/rpc/identity.h"

namespace muster {

class Transport;

// Describes a group that is being formed, for one of its tasks. Replica i of
// task t has rank t * replicas_per_task + i.
struct GroupPlan {
  uint64_t generation = 0;
  uint64_t token = 0;  // Random secret of the members.
  // An entry of kTransports (transports.h).
  const Transport* transport = nullptr;
  // Why the leader chose it, as a clause for the log.
  std::string transport_reason;
  struct Member {
    TaskIdentity identity;
    std::string address;
    std::string host;
  };
  std::vector<Member> members;  // By rank of the task.
  int self = 0;                 // Rank of this task.
  int replicas_per_task = 1;

  int rank_count() const {
    return static_cast<int>(members.size()) * replicas_per_task;
  }
  // Returns the rank of the task that has replica `rank`.
  int TaskOf(int rank) const { return rank / replicas_per_task; }
};

// Returns the ranks of each host, ascending. Hosts are in the order of their
// first rank. `hosts` has the host of each rank.
std::vector<std::vector<int>> GroupByHost(absl::Span<const std::string> hosts);
std::vector<std::vector<int>> RanksByHost(const GroupPlan& plan);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_GROUP_PLAN_H_
