#ifndef WORKER_CLIENT_WORKER_PROTOCOL_H_
#define WORKER_CLIENT_WORKER_PROTOCOL_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/core/base/random.h"

// What both ends of a worker's conversation agree on besides
// proto/worker.proto.
namespace muster {

inline constexpr absl::string_view kWorkerSessionMethod =
    "/muster.Worker/Session";
inline constexpr absl::string_view kWorkerFetchResultMethod =
    "/muster.Worker/FetchResult";

// What one closure may run; each step has its place among the exchanges of the
// closure.
inline constexpr int kStepsPerClosureMax = 4096;

// Names a serialized graph by its content.
inline uint64_t GraphFingerprint(absl::string_view serialized_graph) {
  return FoldIn(0x6d757374, serialized_graph);
}

}  // namespace muster

#endif  // WORKER_CLIENT_WORKER_PROTOCOL_H_
