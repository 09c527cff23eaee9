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

// A graph that has been decoded and believed.
struct CachedStep {
  uint64_t fingerprint = 0;
  Graph graph;
  StepSignature signature;
};

// The graphs this process has been sent, by content, whoever sent them: a
// session that is opened again need not send them again.
//
// Thread-safe.
class GraphCache {
 public:
  // `ops` is borrowed. The step unused for longest makes room.
  explicit GraphCache(const OpRegistry* ops, int step_count_max = 64)
      : ops_(ops), step_count_max_(step_count_max) {}

  // The step of that content. `serialized` may be empty when the cache is
  // believed to have it.
  //   kNotFound         it does not, and nothing was sent
  //   kInvalidArgument  `serialized` is no graph, has another fingerprint, or
  //                     is no step (StepSignature)
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
  // Last used first.
  std::list<std::shared_ptr<const CachedStep>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // WORKER_GRAPH_CACHE_H_
