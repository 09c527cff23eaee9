#include "tests/simulation/scheduler/choice_log.h"

#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"

namespace muster::sim {

std::string Choice::ToString() const {
  const std::string time =
      absl::FormatDuration(absl::Nanoseconds(time_nanoseconds));
  if (candidate_count < 0) {
    return absl::StrCat("thread ", thread, " drew a number below ",
                        -candidate_count, ", at ", time);
  }
  return absl::StrCat("thread ", thread, " of ", candidate_count,
                      " that could run, at ", time);
}

void ChoiceHash::Add(const Choice& choice) {
  constexpr uint64_t kPrime = 1099511628211u;
  for (const int64_t part :
       {int64_t{choice.thread}, int64_t{choice.candidate_count},
        choice.time_nanoseconds}) {
    hash_ = (hash_ ^ static_cast<uint64_t>(part)) * kPrime;
  }
  ++count_;
}

ChoiceLog::ChoiceLog(size_t choice_count_max)
    : choice_count_max_(choice_count_max),
      shared_(static_cast<Shared*>(
          mmap(nullptr, size_bytes(), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  MUSTER_CHECK(shared_ != MAP_FAILED);
}

ChoiceLog::~ChoiceLog() { munmap(shared_, size_bytes()); }

size_t ChoiceLog::size_bytes() const {
  return sizeof(Shared) + choice_count_max_ * sizeof(Choice);
}

void ChoiceLog::Clear() { shared_->count = 0; }

void ChoiceLog::Add(const Choice& choice) {
  if (shared_->count == choice_count_max_) return;
  shared_->choices[shared_->count++] = choice;
}

absl::Status ChoiceLog::Compare(const ChoiceLog& other) const {
  const size_t count = std::min(shared_->count, other.shared_->count);
  for (size_t i = 0; i < count; ++i) {
    const Choice& here = shared_->choices[i];
    const Choice& there = other.shared_->choices[i];
    if (here == there) continue;
    return absl::InternalError(
        absl::StrCat("choice ", i, " differs: ", here.ToString(),
                     "; in the other run ", there.ToString()));
  }
  if (shared_->count == other.shared_->count) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "the first ", count, " choices agree, but one run has ", shared_->count,
      " choices and the other ", other.shared_->count));
}

}  // namespace muster::sim
