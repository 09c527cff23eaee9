#ifndef COMMON_NET_COLLECTIVES_MESSAGE_MESSAGE_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_MESSAGE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/schedule.h"

namespace muster {

// A group over lanes.
struct MessageGroup {
  int rank = 0;
  uint64_t generation = 0;
  // One for each rank of the group; null for this rank.
  std::vector<std::unique_ptr<Lane>> lanes;
  // The numbers by which errors name the ranks, if this group is part of a
  // larger group. Empty: errors use this group's rank numbers.
  std::vector<int> rank_names;
};

// The thread that calls a collective does all the work; there is no other
// thread. It sends and receives on all lanes without blocking, reduces values
// that have arrived while more are in transit, and sleeps only if no lane can
// make progress.
//
// A rank that fails sends the reason to the other ranks, so that all ranks
// report the first cause.
//
//   kInvalidArgument  `lanes` or `rank_names` do not fit the group
//
// `choose` returns the algorithm of an all-reduce of `size_bytes` between
// `size` ranks. Every rank of a group passes the same function.
using AlgorithmChoice = std::function<Algorithm(int size, size_t size_bytes)>;
Algorithm ChooseAlgorithm(int size, size_t size_bytes);
absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(
    MessageGroup group, AlgorithmChoice choose = ChooseAlgorithm);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_MESSAGE_COMMUNICATOR_H_
