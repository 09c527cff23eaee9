#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_MESSAGE_BACKENDS_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_MESSAGE_BACKENDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/message_communicator.h"

namespace muster {

// Lanes between all pairs of ranks: [rank][peer], null if both are the same.
using LaneMesh = std::vector<std::vector<std::unique_ptr<Lane>>>;

enum class RawLaneKind { kTcp, kTls, kUnix };

// Makes raw lanes within this process as tasks do: with a listener for each
// rank.
absl::StatusOr<LaneMesh> MakeRawLanes(RawLaneKind kind, int size,
                                      uint64_t generation);

absl::StatusOr<RankGroup> MakeMessageGroup(
    LaneMesh lanes, uint64_t generation,
    AlgorithmChoice choose = ChooseAlgorithm, std::vector<int> rank_names = {});

// Chooses `algorithm` for every call.
AlgorithmChoice Always(Algorithm algorithm);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_MESSAGE_BACKENDS_H_
