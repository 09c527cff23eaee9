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

// Lanes between any two ranks: [rank][peer], null where they are the same.
using LaneMesh = std::vector<std::vector<std::unique_ptr<Lane>>>;

enum class RawLaneKind { kTcp, kTls, kUnix };

// Raw lanes of this process, made as tasks make them: with a listener for each
// rank.
absl::StatusOr<LaneMesh> MakeRawLanes(RawLaneKind kind, int size,
                                      uint64_t generation);

absl::StatusOr<RankGroup> MakeMessageGroup(
    LaneMesh lanes, uint64_t generation,
    AlgorithmChoice choose = ChooseAlgorithm, std::vector<int> rank_names = {});

// Always `algorithm`.
AlgorithmChoice Always(Algorithm algorithm);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_MESSAGE_BACKENDS_H_
