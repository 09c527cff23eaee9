#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TWO_LEVEL_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TWO_LEVEL_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// A group whose ranks share hosts, as this rank sees it.
struct TwoLevelGroup {
  int rank = 0;
  // The ranks of each host, ascending; hosts in the order of their first rank.
  // Every rank is in exactly one.
  std::vector<std::vector<int>> hosts;

  // The ranks of this rank's host, in the order of `hosts`.
  std::unique_ptr<Communicator> local;
  // True if errors of `local` call ranks as the whole group counts them.
  bool local_has_rank_names = false;

  // Where all hosts have as many ranks: the ranks that are the i-th of their
  // host, where this one is its host's i-th, one for each host in the order of
  // `hosts`. Otherwise the first ranks of all hosts, and null for the others.
  // Its MessageGroup::rank_names are those of the whole group.
  std::unique_ptr<Communicator> across;
};

// Reduces within each host first, so that each byte crosses the network once
// for a host and not once for a rank. Where all hosts have as many ranks, each
// rank takes its part of the reduction across by itself, and so all of a host's
// ranks drive its network; otherwise the first rank of each host does it all.
//
// A call may take a tenth longer than its timeout: a rank that waits for
// another host gives that one time to say for whom it waits itself. A rank that
// waits for its own host hears of failures elsewhere when that wait is over.
//
//   kInvalidArgument  the communicators are not those of such a group
absl::StatusOr<std::unique_ptr<Communicator>> MakeTwoLevelCommunicator(
    TwoLevelGroup group);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TWO_LEVEL_COMMUNICATOR_H_
