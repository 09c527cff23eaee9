#ifndef COORDINATOR_TRAINING_CUT_H_
#define COORDINATOR_TRAINING_CUT_H_

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

// One moment of training at which no step was under way, and the checkpoint
// that holds the variables of that moment.
struct TrainingCut {
  // Stands in the checkpoint too, so that another checkpoint of the same name
  // is not taken for this one. 0 where it is not known.
  uint64_t id = 0;
  // Empty: the variables' first values, which need no checkpoint.
  std::string prefix;
  // Closures whose effects it holds.
  ClosureIds succeeded;
  // What whoever trained said of it; empty: nobody did.
  std::string progress;
  // By loop, what it needs to go on from there.
  std::map<uint64_t, std::shared_ptr<const void>> loops;
};

// The last cuts of a job, to which training can be rolled back. Thread-safe.
class TrainingCuts {
 public:
  // The oldest are forgotten beyond so many.
  explicit TrainingCuts(size_t count_max = 16) : count_max_(count_max) {}

  // The newest from now on.
  void Add(TrainingCut cut) ABSL_LOCKS_EXCLUDED(mutex_);

  // The first values can no longer be had: somebody has assigned others.
  void DropFirstValues() ABSL_LOCKS_EXCLUDED(mutex_);

  // Those after the cut are of a time that is undone.
  void DropAfter(const TrainingCut& cut) ABSL_LOCKS_EXCLUDED(mutex_);

  // Newest first.
  std::vector<TrainingCut> List() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether training has done nothing since the newest.
  bool HoldsAll(const ClosureIds& succeeded) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t count_max_;
  mutable absl::Mutex mutex_;
  // Oldest first. Begins with the first values.
  std::vector<TrainingCut> cuts_ ABSL_GUARDED_BY(mutex_) = {TrainingCut()};
};

}  // namespace muster

#endif  // COORDINATOR_TRAINING_CUT_H_
