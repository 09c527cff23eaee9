#include "coordinator/training_snapshot.h"

#include <algorithm>
#include <utility>

namespace muster {

void TrainingSnapshots::Add(TrainingSnapshot snapshot) {
  absl::MutexLock lock(&mutex_);
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() > count_max_) snapshots_.erase(snapshots_.begin());
}

void TrainingSnapshots::DropFirstValues() {
  absl::MutexLock lock(&mutex_);
  std::erase_if(snapshots_, [](const TrainingSnapshot& snapshot) {
    return snapshot.prefix.empty();
  });
}

void TrainingSnapshots::DropAfter(const TrainingSnapshot& snapshot) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(
      snapshots_.begin(), snapshots_.end(), [&](const TrainingSnapshot& other) {
        return other.id == snapshot.id && other.prefix == snapshot.prefix;
      });
  if (found != snapshots_.end()) snapshots_.erase(found + 1, snapshots_.end());
}

std::vector<TrainingSnapshot> TrainingSnapshots::List() const {
  absl::MutexLock lock(&mutex_);
  return std::vector<TrainingSnapshot>(snapshots_.rbegin(), snapshots_.rend());
}

bool TrainingSnapshots::HoldsAll(const ClosureIds& succeeded) const {
  absl::MutexLock lock(&mutex_);
  return !snapshots_.empty() && snapshots_.back().succeeded == succeeded;
}

}  // namespace muster
