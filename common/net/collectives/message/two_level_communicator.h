#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TWO_LEVEL_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TWO_LEVEL_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// A group whose ranks share hosts, described for one of its ranks.
struct TwoLevelGroup {
  int rank = 0;
  // The ranks of each host, ascending; hosts in the order of their first rank.
  // Every rank is on exactly one host.
  std::vector<std::vector<int>> hosts;

  // Connects the ranks of this rank's host, in the order of `hosts`.
  std::unique_ptr<Communicator> local;
  // True if errors of `local` use the rank numbers of the whole group.
  bool local_has_rank_names = false;

  // Connects one rank of each host, in the order of `hosts`. If all hosts have
  // the same number of ranks and this rank is the i-th of its host, it connects
  // the i-th ranks of all hosts. Otherwise it connects the first ranks of all
  // hosts and is null for other ranks. Its MessageGroup::rank_names are the
  // numbers in the whole group.
  std::unique_ptr<Communicator> across;
};

// Reduces within each host first, so that each byte crosses the network once
// per host and not once per rank. If all hosts have the same number of ranks,
// each rank reduces its part of the buffer across hosts, so that all ranks of a
// host use its network. Otherwise the first rank of each host reduces the whole
// buffer across hosts.
//
// A call may take a tenth longer than its timeout: a rank that waits for
// another host gives that host time to report for which rank it waits itself. A
// rank that waits for its own host learns of failures on other hosts only when
// that wait ends.
//
//   kInvalidArgument  `hosts` or the communicators do not describe such a group
absl::StatusOr<std::unique_ptr<Communicator>> MakeTwoLevelCommunicator(
    TwoLevelGroup group);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TWO_LEVEL_COMMUNICATOR_H_
