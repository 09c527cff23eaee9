#ifndef WORKER_GRAPH_CACHE_H_
#define WORKER_GRAPH_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "worker/client/step_signature.h"

namespace muster {

// A decoded and verified graph with its signature.
struct CachedStep {
  uint64_t fingerprint = 0;
  Graph graph;
  StepSignature signature;
};

// The graphs that this process has received, keyed by content, independent of
// the sender. The coordinator need not send them again to a new session.
//
// Thread-safe.
class GraphCache {
 public:
  // `ops` is borrowed and must outlive the cache. With more than
  // `step_count_max` steps, the least recently used one is evicted.
  explicit GraphCache(const OpRegistry* ops, int step_count_max = 64)
      : ops_(ops), step_count_max_(step_count_max) {}

  // Returns the step with this fingerprint. `serialized` may be empty if the
  // caller expects the cache to have it.
  //   kNotFound         the cache does not have it and `serialized` is empty
  //   kInvalidArgument  `serialized` is not a valid graph, has another
  //                     fingerprint, or is not a step (StepSignature)
  absl::StatusOr<std::shared_ptr<const CachedStep>> Get(
      uint64_t fingerprint, absl::string_view serialized)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<uint64_t> fingerprints() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<const CachedStep> Find(uint64_t fingerprint)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const OpRegistry* const ops_;
  const int step_count_max_;
  mutable absl::Mutex mutex_;
  // Most recently used first.
  std::list<std::shared_ptr<const CachedStep>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // WORKER_GRAPH_CACHE_H_
