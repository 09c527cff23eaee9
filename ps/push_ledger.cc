#include "ps/push_ledger.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<bool> PushLedger::Claim(const PushId& id) {
  if (id.step_id == 0) return true;
#ifdef MUSTER_PLANT_NO_LEDGER
  return true;
#endif
  absl::MutexLock lock(&mutex_);
  while (true) {
#ifndef MUSTER_PLANT_NO_LOW_WATER_MARK
    if (id.step_id < low_water_mark_) return false;
#endif
    const auto step = steps_.find(id.step_id);
    const bool is_first =
        step == steps_.end() || !step->second.contains(id.exchange_index);
    if (is_first && remembered_count_ >= remembered_count_max_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          remembered_count_,
          " pushes are remembered, which is the limit; the oldest is of step ",
          steps_.begin()->first, ", and the low-water mark is ",
          low_water_mark_,
          ". It must advance before more pushes are accepted"));
    }
    if (is_first) {
      steps_[id.step_id].emplace(id.exchange_index, false);
      ++remembered_count_;
      return true;
    }
#ifdef MUSTER_PLANT_EARLY_REPEAT
    return false;
#endif
    if (IsDecided(id)) return false;
    // No deadline: the claiming thread computes and writes its record, and
    // waits for nothing else.
    auto is_decided = [this, &id]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return IsDecided(id);
    };
    mutex_.Await(absl::Condition(&is_decided));
  }
}

void PushLedger::Finish(const PushId& id) {
  if (id.step_id == 0) return;
  absl::MutexLock lock(&mutex_);
  const auto step = steps_.find(id.step_id);
  // The step may be absent: the low-water mark has passed it, or Clear() was
  // called.
  if (step != steps_.end()) step->second[id.exchange_index] = true;
}

void PushLedger::GiveUp(const PushId& id) {
  if (id.step_id == 0) return;
  absl::MutexLock lock(&mutex_);
  const auto step = steps_.find(id.step_id);
  if (step == steps_.end()) return;
  remembered_count_ -= step->second.erase(id.exchange_index);
  if (step->second.empty()) steps_.erase(step);
}

void PushLedger::Restore(const PushId& id) {
  if (id.step_id == 0) return;
  absl::MutexLock lock(&mutex_);
  if (id.step_id < low_water_mark_) return;
  const auto [entry, is_new] =
      steps_[id.step_id].try_emplace(id.exchange_index, true);
  if (is_new) ++remembered_count_;
}

std::vector<PushId> PushLedger::List(uint64_t* low_water_mark) const {
  absl::ReaderMutexLock lock(&mutex_);
  *low_water_mark = low_water_mark_;
  std::vector<PushId> pushes;
  for (const auto& [step_id, exchanges] : steps_) {
    for (const auto& [exchange_index, is_applied] : exchanges) {
      if (is_applied) pushes.push_back({step_id, exchange_index});
    }
  }
  return pushes;
}

bool PushLedger::IsDecided(const PushId& id) const {
  const auto step = steps_.find(id.step_id);
  if (step == steps_.end()) return true;
  const auto exchange = step->second.find(id.exchange_index);
  return exchange == step->second.end() || exchange->second;
}

bool PushLedger::AdvanceLowWaterMark(uint64_t step_id) {
  absl::MutexLock lock(&mutex_);
  if (step_id <= low_water_mark_) return false;
  low_water_mark_ = step_id;
  while (!steps_.empty() && steps_.begin()->first < low_water_mark_) {
    remembered_count_ -= steps_.begin()->second.size();
    steps_.erase(steps_.begin());
  }
  return true;
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
