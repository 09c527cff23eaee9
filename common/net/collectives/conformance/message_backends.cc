#include "common/net/collectives/conformance/message_backends.h"

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/message/lane_listener.h"

namespace muster {
namespace {

using Listeners = std::vector<std::unique_ptr<LaneListener>>;

// Connects one rank: it connects to lower ranks and accepts higher ones.
absl::Status ConnectToOthers(int rank, const Listeners& listeners,
                             uint64_t generation,
                             std::vector<std::unique_ptr<Lane>>& lanes) {
  const absl::Time deadline = Clock::Real()->Now() + absl::Seconds(60);
  const int size = static_cast<int>(listeners.size());
  for (int peer = 0; peer < rank; ++peer) {
    ASSIGN_OR_RETURN(lanes[peer], ConnectLane(listeners[peer]->address(),
                                              listeners[peer]->token(), rank,
                                              generation, deadline));
  }
  std::vector<int> higher;
  for (int peer = rank + 1; peer < size; ++peer) higher.push_back(peer);
  ASSIGN_OR_RETURN(auto accepted,
                   listeners[rank]->Accept(higher, generation, deadline));
  for (auto& [peer, lane] : accepted) lanes[peer] = std::move(lane);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaneMesh> MakeRawLanes(RawLaneKind kind, int size,
                                      uint64_t generation) {
  Listeners listeners;
  for (int rank = 0; rank < size; ++rank) {
    ASSIGN_OR_RETURN(
        listeners.emplace_back(),
        kind == RawLaneKind::kUnix
            ? LaneListener::ListenUnix()
            : LaneListener::ListenTcp("127.0.0.1",
                                      {.encrypts = kind == RawLaneKind::kTls}));
  }
  LaneMesh lanes(size);
  std::vector<absl::Status> statuses(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    lanes[rank].resize(size);
    threads.emplace_back([&, rank] {
      statuses[rank] =
          ConnectToOthers(rank, listeners, generation, lanes[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return lanes;
}

absl::StatusOr<RankGroup> MakeMessageGroup(LaneMesh lanes, uint64_t generation,
                                           AlgorithmChoice choose,
                                           std::vector<int> rank_names) {
  RankGroup group;
  for (size_t rank = 0; rank < lanes.size(); ++rank) {
    ASSIGN_OR_RETURN(
        group.emplace_back(),
        MakeMessageCommunicator({static_cast<int>(rank), generation,
                                 std::move(lanes[rank]), rank_names},
                                choose));
  }
  return group;
}

AlgorithmChoice Always(Algorithm algorithm) {
  return [algorithm](int, size_t) { return algorithm; };
}

}  // namespace muster
