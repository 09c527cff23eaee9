#include "common/net/collectives/message/oversubscription.h"

#include <sched.h>
#include <unistd.h>

namespace muster {

bool IsOversubscribed(const std::vector<std::unique_ptr<Lane>>& lanes) {
  int rank_count = 1;
  for (const auto& lane : lanes) {
    if (lane == nullptr) continue;
    if (lane->fd() < 0) return true;
    if (lane->is_same_host()) ++rank_count;
  }
  // If this rank is bound to one processor, the other ranks are bound to other
  // processors, so all processors of the machine count.
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof(processors), &processors) != 0) return true;
  const int own_count = CPU_COUNT(&processors);
  return rank_count >
         (own_count > 1 ? own_count : sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace muster
