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
  // One for each rank of the group; null for this one.
  std::vector<std::unique_ptr<Lane>> lanes;
  // The names of ranks in errors, where this group is a part of a larger one.
  // Empty: as it counts here.
  std::vector<int> rank_names;
};

// The thread that calls a collective moves all its lanes: it sends and receives
// as the wires allow, reduces what has arrived while more is under way, and
// sleeps only when no lane can continue. There is no other thread.
//
// A rank that fails tells the others why, so that all end with the first cause.
//
//   kInvalidArgument  the lanes are not those of such a group
//
// `choose` says how to all-reduce so many bytes between so many ranks; every
// rank of a group has the same.
using AlgorithmChoice = std::function<Algorithm(int size, size_t size_bytes)>;
Algorithm ChooseAlgorithm(int size, size_t size_bytes);
absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(
    MessageGroup group, AlgorithmChoice choose = ChooseAlgorithm);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_MESSAGE_COMMUNICATOR_H_
