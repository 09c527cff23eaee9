#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/message_backends.h"
#include "common/net/collectives/conformance/rpc_lanes.h"

namespace muster {
namespace {

constexpr uint64_t kGeneration = 5;

absl::StatusOr<RankGroup> MakeGroup(int size) {
  absl::StatusOr<LaneMesh> lanes = MakeRpcLanes(size, kGeneration);
  if (!lanes.ok()) return lanes.status();
  return MakeMessageGroup(*std::move(lanes), kGeneration);
}

// Each rank brings a server with threads of its own, so groups stay small.
const BackendRegistration kRegistration({"Rpc", MakeGroup, /*size_max=*/5});

}  // namespace
}  // namespace muster
