#include "coordinator/update_rounds.h"

#include "common/core/base/check.h"

namespace muster {

void UpdateRounds::Begin(int applied_count) {
  MUSTER_CHECK(applied_count >= 0 && applied_count < options_.gradient_count);
  ++round_;
  member_count_ = applied_count;
  chosen_count_ = applied_count;
  finished_count_ = applied_count;
}

uint64_t UpdateRounds::Start() {
  MUSTER_CHECK(MayStart());
  ++member_count_;
  return round_;
}

bool UpdateRounds::Choose(uint64_t round) {
  if (round != round_ || chosen_count_ == options_.gradient_count) return false;
  ++chosen_count_;
  return true;
}

bool UpdateRounds::FinishChosen() {
  if (++finished_count_ < options_.gradient_count) return false;
  Begin(0);
  return true;
}

void UpdateRounds::Leave(uint64_t round) {
  if (round == round_) --member_count_;
}

}  // namespace muster
