#ifndef COMMON_NET_COLLECTIVES_MESSAGE_BLAME_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_BLAME_H_

#include <vector>

#include "absl/types/span.h"

namespace muster {

// The state of another rank, as a rank knows it when its wait in a collective
// expires.
struct PeerState {
  bool is_other = true;  // False for the rank itself.
  // It is known to have reached the collective.
  bool has_arrived = false;
  // The collective does not end before something comes from it or goes to it.
  bool is_awaited = false;
  // It has said that it waits too, or has sent what has to wait for others.
  bool is_waiting = false;
};

// The ranks that hold up a collective.
struct Blame {
  // All ranks have arrived, and `ranks` do not continue; otherwise `ranks` have
  // not arrived.
  bool have_all_arrived = false;
  std::vector<int> ranks;
  // Exactly one rank may be the cause. If it is not certain, some of `ranks`
  // may themselves wait for others, and those others may know more.
  bool is_certain = false;
};

// `peers` has one entry for each rank. In a broadcast the root may have come
// and gone unseen, so a rank that has not arrived counts only if something is
// due from it, where there are such ranks.
Blame FindBlame(absl::Span<const PeerState> peers, bool is_broadcast);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_BLAME_H_
