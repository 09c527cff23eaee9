#ifndef COMMON_NET_COLLECTIVES_MESSAGE_BLAME_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_BLAME_H_

#include <vector>

#include "absl/types/span.h"

namespace muster {

// What a rank has learned about another rank when its wait in a collective
// expires.
struct PeerState {
  bool is_other = true;  // False for the rank itself.
  // The peer has reached the collective, as far as this rank has learned.
  bool has_arrived = false;
  // This rank still has to receive from or send to the peer in the collective.
  bool is_awaited = false;
  // The peer has announced that it waits too, or has sent a frame that must
  // wait for other ranks.
  bool is_waiting = false;
};

// The ranks that delay a collective.
struct Blame {
  // True if all ranks have arrived and `ranks` do not continue. False if
  // `ranks` have not arrived.
  bool have_all_arrived = false;
  std::vector<int> ranks;
  // True if exactly one rank can be the cause. If false, some of `ranks` may
  // wait for other ranks themselves, and may identify the cause better.
  bool is_certain = false;
};

// `peers` has one entry for each rank. In a broadcast, a rank may finish
// without a message to this rank. If this rank still needs some of the ranks
// that have not arrived, only those are blamed.
Blame FindBlame(absl::Span<const PeerState> peers, bool is_broadcast);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_BLAME_H_
