#ifndef COORDINATOR_ROLLBACK_POINT_H_
#define COORDINATOR_ROLLBACK_POINT_H_

#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/closure_ids.h"

namespace muster {

// The outcome of a rollback.
struct RollbackReport {
  // The restored checkpoint. Empty for the variables' initial values.
  std::string checkpoint;
  // Undone closures: those that had succeeded after the snapshot. undone_ids
  // lists the first few.
  int64_t undone_count = 0;
  std::vector<uint64_t> undone_ids;
  // The lost servers.
  std::vector<std::string> servers;
};

// A snapshot of training between two steps, and the checkpoint with its
// variables.
struct RollbackPoint {
  // Also stored in the checkpoint, to distinguish it from another checkpoint
  // with the same prefix. 0 if unknown.
  uint64_t id = 0;
  // Prefix of the checkpoint. Empty for the initial values of the variables,
  // which need no checkpoint.
  std::string prefix;
  // The closures whose effects it includes.
  ClosureIds succeeded;
  // The progress of training from the progress source; no value if there is no
  // progress source.
  std::any progress;
  // The state with which each loop resumes, by loop id.
  std::map<uint64_t, std::shared_ptr<const void>> loops;
  // True once the checkpoint has been published.
  bool is_published = false;
};

// True if the checkpoint of `prefix` exists, or if that cannot be determined
// now.
bool IsPublished(const std::string& prefix);

// The latest points of a job, to which training can be rolled back.
// Thread-safe.
class RollbackPoints {
 public:
  // Keeps the newest `count_max` points.
  explicit RollbackPoints(size_t count_max = 16) : count_max_(count_max) {}

  // Adds the newest point.
  void Add(RollbackPoint point) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the point of the initial values, because variables were assigned.
  void DropFirstValues() ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the points after the given one, which a rollback has invalidated.
  void DropAfter(const RollbackPoint& point) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the points whose checkpoint was deleted, because each point keeps
  // the history of training in memory. `exists` returns whether the checkpoint
  // of a prefix is published. A point whose checkpoint has never been published
  // is kept: it is about to be. Calls `exists` without a lock.
  void DropDeleted(absl::FunctionRef<bool(const std::string& prefix)> exists)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all points, newest first.
  std::vector<RollbackPoint> List() const ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return points_.size();
  }

  // True if the newest point includes exactly the closures `succeeded`.
  bool IncludesExactly(const ClosureIds& succeeded) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t count_max_;
  mutable absl::Mutex mutex_;
  // Oldest first. Begins with the point of the initial values.
  std::vector<RollbackPoint> points_ ABSL_GUARDED_BY(mutex_) = {
      RollbackPoint()};
};

}  // namespace muster

#endif  // COORDINATOR_ROLLBACK_POINT_H_
