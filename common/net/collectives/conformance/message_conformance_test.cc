#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/message_backends.h"
#include "common/net/collectives/message/testing/memory_lane.h"
#include "common/net/collectives/schedule.h"

namespace muster {
namespace {

constexpr uint64_t kGeneration = 5;

// Tests every algorithm over memory, and every kind of raw lane with the
// default choice of algorithms.
CommunicatorBackend InMemory(const char* name, AlgorithmChoice choose) {
  return {name, [choose](int size) {
            return MakeMessageGroup(MakeMemoryLanes(size), kGeneration, choose);
          }};
}

CommunicatorBackend OverRawLanes(const char* name, RawLaneKind kind) {
  return {name, [kind](int size) -> absl::StatusOr<RankGroup> {
            absl::StatusOr<LaneMesh> lanes =
                MakeRawLanes(kind, size, kGeneration);
            if (!lanes.ok()) return lanes.status();
            return MakeMessageGroup(*std::move(lanes), kGeneration);
          }};
}

const BackendRegistration kRegistrations[] = {
    BackendRegistration(InMemory("MemoryOneShot", Always(Algorithm::kOneShot))),
    BackendRegistration(InMemory("MemoryDirect", Always(Algorithm::kDirect))),
    BackendRegistration(InMemory("MemoryRing", Always(Algorithm::kRing))),
    BackendRegistration(
        InMemory("MemoryHalvingDoubling", Always(Algorithm::kHalvingDoubling))),
    BackendRegistration(OverRawLanes("RawTcp", RawLaneKind::kTcp)),
    BackendRegistration(OverRawLanes("RawTls", RawLaneKind::kTls)),
    BackendRegistration(OverRawLanes("RawUnix", RawLaneKind::kUnix)),
};

}  // namespace
}  // namespace muster
