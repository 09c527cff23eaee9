#ifndef COMMON_CORE_SYSTEM_REPEAT_COUNT_H_
#define COMMON_CORE_SYSTEM_REPEAT_COUNT_H_

#include <cstdint>

namespace muster {

// Counts events that would each log the same line, and selects those that do:
// the first, the 10th, the 100th and so on.
//
//   if (skipped.Add()) LOG(WARNING) << "skipped, time " << skipped.count();
//
// Not thread-safe.
class RepeatCount {
 public:
  // Counts one event. Returns true if it should be logged.
  bool Add() {
    ++count_;
    if (count_ < next_logged_) return false;
    next_logged_ *= 10;
    return true;
  }

  void Reset() { *this = RepeatCount(); }

  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
  int64_t next_logged_ = 1;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_REPEAT_COUNT_H_
