#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_HOST_PACK_MEMORY_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_HOST_PACK_MEMORY_H_

#include <memory>

#include "absl/time/time.h"
#include "common/learn/strategy/synchronous/pack_memory.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// Packs in the memory of the host that `communicator` allocates. `layout` and
// `communicator` are borrowed.
std::unique_ptr<PackMemory> MakeHostPackMemory(const PackLayout* layout,
                                               Communicator* communicator,
                                               absl::Duration timeout);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_HOST_PACK_MEMORY_H_
