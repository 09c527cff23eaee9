#ifndef COORDINATOR_TRAINING_SNAPSHOT_H_
#define COORDINATOR_TRAINING_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/closure_ids.h"

namespace muster {

// A snapshot of training between two steps, and the checkpoint with its
// variables.
struct TrainingSnapshot {
  // Also stored in the checkpoint, to distinguish it from another checkpoint of
  // the same name. 0 if unknown.
  uint64_t id = 0;
  // Empty: the variables' initial values, which need no checkpoint.
  std::string prefix;
  // The closures whose effects it includes.
  ClosureIds succeeded;
  // The progress of training from the progress source; empty if there was none.
  std::string progress;
  // By loop: the state with which it resumes.
  std::map<uint64_t, std::shared_ptr<const void>> loops;
};

// The latest snapshots of a job, to which training can be rolled back.
// Thread-safe.
class TrainingSnapshots {
 public:
  // Keeps the newest `count_max` snapshots.
  explicit TrainingSnapshots(size_t count_max = 16) : count_max_(count_max) {}

  // Adds the newest snapshot.
  void Add(TrainingSnapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the initial values, because variables were assigned.
  void DropFirstValues() ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the snapshots after the given one, which a rollback has undone.
  void DropAfter(const TrainingSnapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all snapshots, newest first.
  std::vector<TrainingSnapshot> List() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the newest snapshot includes exactly the closures `succeeded`.
  bool HoldsAll(const ClosureIds& succeeded) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t count_max_;
  mutable absl::Mutex mutex_;
  // Oldest first. Initially the variables' initial values.
  std::vector<TrainingSnapshot> snapshots_ ABSL_GUARDED_BY(mutex_) = {
      TrainingSnapshot()};
};

}  // namespace muster

#endif  // COORDINATOR_TRAINING_SNAPSHOT_H_
