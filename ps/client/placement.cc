#include "ps/client/placement.h"

#include <algorithm>

#include "common/core/base/check.h"

namespace muster {

Placement::Placement(PlacementPolicy policy, int server_count)
    : policy_(policy), server_bytes_(server_count) {
  MUSTER_CHECK(server_count >= 1);
}

int Placement::PlaceNext(int64_t size_bytes) {
  int server = 0;
  switch (policy_) {
    case PlacementPolicy::kRoundRobin:
      server = static_cast<int>(placed_count_ % server_bytes_.size());
      break;
    case PlacementPolicy::kGreedyByBytes:
      server = static_cast<int>(
          std::min_element(server_bytes_.begin(), server_bytes_.end()) -
          server_bytes_.begin());
      break;
  }
  NotePlaced(server, size_bytes);
  return server;
}

void Placement::NotePlaced(int server, int64_t size_bytes) {
  ++placed_count_;
  server_bytes_[server] += size_bytes;
}

}  // namespace muster
