#include "ps/push_ledger.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<bool> PushLedger::Claim(const PushId& id) {
  if (id.step_id == 0) return true;
#ifdef MUSTER_PLANT_NO_LEDGER
  return true;
#endif
  absl::MutexLock lock(&mutex_);
#ifndef MUSTER_PLANT_NO_LOW_WATER_MARK
  if (id.step_id < low_water_mark_) return false;
#endif
  if (remembered_count_ >= remembered_count_max_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        remembered_count_,
        " pushes are remembered, which is the limit; the oldest is of step ",
        steps_.begin()->first, ", and the low-water mark is ", low_water_mark_,
        ". It must advance before more pushes are accepted"));
  }
  const bool is_first =
      steps_[id.step_id].try_emplace(id.exchange_index, false).second;
  if (is_first) {
    ++remembered_count_;
    return true;
  }
#ifdef MUSTER_PLANT_EARLY_REPEAT
  return false;
#endif
  // No deadline: the claiming thread only computes and never blocks.
  auto is_applied = [this, &id]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return IsApplied(id);
  };
  mutex_.Await(absl::Condition(&is_applied));
  return false;
}

void PushLedger::Finish(const PushId& id) {
  if (id.step_id == 0) return;
  absl::MutexLock lock(&mutex_);
  const auto step = steps_.find(id.step_id);
  // The step may be absent: the low-water mark has passed it, or Clear() was
  // called.
  if (step != steps_.end()) step->second[id.exchange_index] = true;
}

bool PushLedger::IsApplied(const PushId& id) const {
  const auto step = steps_.find(id.step_id);
  if (step == steps_.end()) return true;
  const auto exchange = step->second.find(id.exchange_index);
  return exchange == step->second.end() || exchange->second;
}

void PushLedger::AdvanceLowWaterMark(uint64_t step_id) {
  absl::MutexLock lock(&mutex_);
  low_water_mark_ = std::max(low_water_mark_, step_id);
  while (!steps_.empty() && steps_.begin()->first < low_water_mark_) {
    remembered_count_ -= steps_.begin()->second.size();
    steps_.erase(steps_.begin());
  }
}

void PushLedger::Clear() {
  absl::MutexLock lock(&mutex_);
  steps_.clear();
  remembered_count_ = 0;
  low_water_mark_ = 0;
}

uint64_t PushLedger::newest_step_id() const {
  absl::ReaderMutexLock lock(&mutex_);
  return steps_.empty() ? 0 : steps_.rbegin()->first;
}

size_t PushLedger::remembered_count() const {
  absl::ReaderMutexLock lock(&mutex_);
  return remembered_count_;
}

}  // namespace muster
