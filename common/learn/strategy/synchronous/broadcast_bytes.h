#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_BROADCAST_BYTES_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_BROADCAST_BYTES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// Broadcasts bytes or a status from worker 0 to all workers: a collective if
// there are several workers. `call` names it and bounds the wait.

// Returns `bytes` of the replica of rank `root`, at most 1 GiB; ignores the
// bytes of others.
absl::StatusOr<std::string> BroadcastBytes(ReplicaGroup* group,
                                           const CollectiveCall& call,
                                           std::string bytes, int root = 0);

// Returns the status of worker 0, with its payloads; see EncodeResult().
absl::Status BroadcastStatus(ReplicaGroup* group, const CollectiveCall& call,
                             const absl::Status& status);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_BROADCAST_BYTES_H_
