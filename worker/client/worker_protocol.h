#ifndef WORKER_CLIENT_WORKER_PROTOCOL_H_
#define WORKER_CLIENT_WORKER_PROTOCOL_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/core/base/random.h"

// Names and limits that coordinators and workers share besides
// proto/worker.proto.
namespace muster {

inline constexpr absl::string_view kWorkerSessionMethod =
    "/muster.Worker/Session";
inline constexpr absl::string_view kWorkerFetchResultMethod =
    "/muster.Worker/FetchResult";

// The maximum number of steps in one closure. Each step has its own range of
// exchange indices of the closure.
inline constexpr int kStepsPerClosureMax = 4096;

// Returns a fingerprint of a serialized graph's content.
inline uint64_t GraphFingerprint(absl::string_view serialized_graph) {
  return FoldIn(0x6d757374, serialized_graph);
}

}  // namespace muster

#endif  // WORKER_CLIENT_WORKER_PROTOCOL_H_
