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

// A snapshot of training between two steps, and the checkpoint with its
// variables.
struct RollbackPoint {
  // Also stored in the checkpoint, to distinguish it from another checkpoint of
  // the same name. 0 if unknown.
  uint64_t id = 0;
  // Empty: the variables' initial values, which need no checkpoint.
  std::string prefix;
  // The closures whose effects it includes.
  ClosureIds succeeded;
  // The progress of training from the progress source; no value if there was
  // none.
  std::any progress;
  // By loop: the state with which it resumes.
  std::map<uint64_t, std::shared_ptr<const void>> loops;
  // The checkpoint has been published.
  bool is_published = false;
};

// True if the checkpoint of `prefix` is there, or if that cannot be told now.
bool IsPublished(const std::string& prefix);

// The latest points of a job, to which training can be rolled back.
// Thread-safe.
class RollbackPoints {
 public:
  // Keeps the newest `count_max` points.
  explicit RollbackPoints(size_t count_max = 16) : count_max_(count_max) {}

  // Adds the newest point.
  void Add(RollbackPoint point) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the initial values, because variables were assigned.
  void DropFirstValues() ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the points after the given one, which a rollback has undone.
  void DropAfter(const RollbackPoint& point) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the points whose checkpoint was deleted: each holds the history of
  // training. `exists` tells whether the checkpoint of a prefix is published;
  // one that is not, and never was, is about to be. Calls it without a lock.
  void DropDeleted(absl::FunctionRef<bool(const std::string& prefix)> exists)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all points, newest first.
  std::vector<RollbackPoint> List() const ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return points_.size();
  }

  // True if the newest point includes exactly the closures `succeeded`.
  bool HoldsAll(const ClosureIds& succeeded) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t count_max_;
  mutable absl::Mutex mutex_;
  // Oldest first. Initially the variables' initial values.
  std::vector<RollbackPoint> points_ ABSL_GUARDED_BY(mutex_) = {
      RollbackPoint()};
};

}  // namespace muster

#endif  // COORDINATOR_ROLLBACK_POINT_H_
