#include "coordinator/training_cut.h"

#include <algorithm>
#include <utility>

namespace muster {

void TrainingCuts::Add(TrainingCut cut) {
  absl::MutexLock lock(&mutex_);
  cuts_.push_back(std::move(cut));
  if (cuts_.size() > count_max_) cuts_.erase(cuts_.begin());
}

void TrainingCuts::DropFirstValues() {
  absl::MutexLock lock(&mutex_);
  std::erase_if(cuts_,
                [](const TrainingCut& cut) { return cut.prefix.empty(); });
}

void TrainingCuts::DropAfter(const TrainingCut& cut) {
  absl::MutexLock lock(&mutex_);
  const auto found =
      std::find_if(cuts_.begin(), cuts_.end(), [&](const TrainingCut& other) {
        return other.id == cut.id && other.prefix == cut.prefix;
      });
  if (found != cuts_.end()) cuts_.erase(found + 1, cuts_.end());
}

std::vector<TrainingCut> TrainingCuts::List() const {
  absl::MutexLock lock(&mutex_);
  return std::vector<TrainingCut>(cuts_.rbegin(), cuts_.rend());
}

bool TrainingCuts::HoldsAll(const ClosureIds& succeeded) const {
  absl::MutexLock lock(&mutex_);
  return !cuts_.empty() && cuts_.back().succeeded == succeeded;
}

}  // namespace muster
