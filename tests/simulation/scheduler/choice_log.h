#ifndef TESTS_SIMULATION_SCHEDULER_CHOICE_LOG_H_
#define TESTS_SIMULATION_SCHEDULER_CHOICE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster::sim {

// One decision of the scheduler: which of the threads that could run continued,
// or which thread drew a number, and when.
struct Choice {
  int32_t thread = 0;
  // If negative, a number was drawn below its absolute value, or 1000 if that
  // is less.
  int32_t candidate_count = 0;
  int64_t time_nanoseconds = 0;

  // "thread 3 of 7 that could run, at 1.5ms", or
  // "thread 3 drew a number below 4, at 1.5ms".
  std::string ToString() const;
  bool operator==(const Choice& other) const = default;
};

// The FNV-1a hash (Fowler, Noll, Vo) of a sequence of choices.
class ChoiceHash {
 public:
  void Add(const Choice& choice);
  uint64_t hash() const { return hash_; }
  int64_t count() const { return count_; }

 private:
  uint64_t hash_ = 14695981039346656037u;
  int64_t count_ = 0;
};

// The choices of a run, in memory that forked processes share, so that the
// parent of two runs can compare them. Keeps the first `choice_count_max`.
class ChoiceLog {
 public:
  // Aborts if the memory cannot be mapped.
  explicit ChoiceLog(size_t choice_count_max);
  ~ChoiceLog();
  ChoiceLog(const ChoiceLog&) = delete;
  ChoiceLog& operator=(const ChoiceLog&) = delete;

  void Clear();
  void Add(const Choice& choice);
  // Returns OK if both have the same choices.
  //   kInternal  names the first choice that differs, and both outcomes
  absl::Status Compare(const ChoiceLog& other) const;

 private:
  struct Shared {
    size_t count;
    Choice choices[];
  };

  size_t size_bytes() const;

  const size_t choice_count_max_;
  Shared* const shared_;
};

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_CHOICE_LOG_H_
