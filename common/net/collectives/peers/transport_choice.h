#ifndef COMMON_NET_COLLECTIVES_PEERS_TRANSPORT_CHOICE_H_
#define COMMON_NET_COLLECTIVES_PEERS_TRANSPORT_CHOICE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/peer_group.pb.h"

namespace muster {

// Tasks that name the same host run under the same kernel and in the same
// network namespace.
std::string OwnHostName();

// How a group can move its bytes, by what its tasks offer, the best way first;
// never empty. A pure function, so that whoever leads decides alike:
//
//   all on one host            shared memory
//   several, some of them with more than one rank
//                              shared memory within, messages between them
//   else, or where a task has switched shared memory off
//                              messages
//
// Messages go over raw sockets if every task has them, and over gRPC last.
std::vector<proto::TransportPlan> RankTransports(
    absl::Span<const proto::TransportOffer> offers, int replicas_per_task);

// "shared memory", "gRPC", "shared memory within hosts and raw sockets between
// them".
std::string DescribeTransport(const proto::TransportPlan& plan);

// Which ranks are on which host: those of one host ascending, hosts in the
// order of their first rank. `hosts` by rank.
std::vector<std::vector<int>> GroupByHost(absl::Span<const std::string> hosts);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_TRANSPORT_CHOICE_H_
