#ifndef PS_SAVE_PACE_H_
#define PS_SAVE_PACE_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace muster {

// Keeps a save from slowing the training beside it. A low priority keeps it off
// the processors, but not off the memory that all of them share, so it rests
// after each piece, twelve times as long as it computed and copied for it;
// unless nobody has asked for anything for a while: then training waits for the
// save, or is over.
//
// Thread-compatible.
class SavePace {
 public:
  // Of the machine, except in tests.
  struct Time {
    std::function<absl::Time()> now;
    // What the calling thread has used of a processor. Waiting for the disk
    // takes nothing from anybody.
    std::function<absl::Duration()> worked;
    std::function<void(absl::Duration)> rest;
  };

  static constexpr absl::Duration kRestMax = absl::Milliseconds(50);
  static constexpr int kRestsPerWork = 12;
  // Without an exchange for so long nobody trains.
  static constexpr absl::Duration kQuiet = absl::Milliseconds(500);

  // `exchange_count` says how many exchanges there have been; called for each
  // piece.
  SavePace(std::function<int64_t()> exchange_count, Time time);
  explicit SavePace(std::function<int64_t()> exchange_count);

  // After each piece of work, on the thread that does it. Returns when the next
  // may begin.
  void EndPiece();

 private:
  const std::function<int64_t()> exchange_count_;
  const Time time_;
  absl::Duration worked_before_;
  absl::Time last_exchange_;  // When one was seen.
  int64_t exchanges_before_ = 0;
};

}  // namespace muster

#endif  // PS_SAVE_PACE_H_
