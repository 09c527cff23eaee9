#include "common/net/collectives/transports/transport.h"

#include <algorithm>

namespace muster {

int TransportRanks::IndexOf(int rank) const {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) -
                          ranks.begin());
}

}  // namespace muster
