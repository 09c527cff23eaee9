#include "common/net/collectives/message/blame.h"

#include <utility>

namespace muster {
namespace {

template <typename Predicate>
std::vector<int> RanksWhere(absl::Span<const PeerState> peers,
                            Predicate predicate) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    if (peers[rank].is_other && predicate(peers[rank])) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

}  // namespace

Blame FindBlame(absl::Span<const PeerState> peers, bool is_broadcast) {
  Blame blame;
  blame.ranks =
      RanksWhere(peers, [](const PeerState& p) { return !p.has_arrived; });
  if (is_broadcast) {
    std::vector<int> due = RanksWhere(peers, [](const PeerState& p) {
      return !p.has_arrived && p.is_awaited;
    });
    if (!due.empty()) blame.ranks = std::move(due);
  }
  blame.have_all_arrived = blame.ranks.empty();
  if (blame.have_all_arrived) {
    blame.ranks =
        RanksWhere(peers, [](const PeerState& p) { return p.is_awaited; });
  }
  std::vector<int> silent;
  for (const int rank : blame.ranks) {
    if (!peers[rank].is_waiting) silent.push_back(rank);
  }
  blame.is_certain = silent.size() == 1;
  if (!silent.empty()) blame.ranks = std::move(silent);
  return blame;
}

}  // namespace muster
