#ifndef PS_SAVE_PACE_H_
#define PS_SAVE_PACE_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace muster {

// Throttles a save so that it does not slow down training. A low thread
// priority keeps the save from competing for processors, but not for memory
// bandwidth. Therefore the save sleeps after each piece, kRestsPerWork times as
// long as it computed and copied. It does not sleep if there has been no
// exchange for kQuiet: training then waits for the save, or has ended.
//
// Thread-compatible.
class SavePace {
 public:
  // Replaced in tests.
  struct Time {
    std::function<absl::Time()> now;
    // Returns the processor time of the calling thread. Waiting for the disk
    // does not count.
    std::function<absl::Duration()> worked;
    std::function<void(absl::Duration)> rest;
  };

  static constexpr absl::Duration kRestMax = absl::Milliseconds(50);
  static constexpr int kRestsPerWork = 12;
  // After this time without an exchange, no training is running.
  static constexpr absl::Duration kQuiet = absl::Milliseconds(500);

  // `exchange_count` returns the number of exchanges so far. It is called once
  // for each piece.
  SavePace(std::function<int64_t()> exchange_count, Time time);
  explicit SavePace(std::function<int64_t()> exchange_count);

  // Call after each piece of work, on the thread that does it. Blocks until the
  // next piece may begin.
  void EndPiece();

 private:
  const std::function<int64_t()> exchange_count_;
  const Time time_;
  absl::Duration worked_before_;
  absl::Time last_exchange_;  // When the last new exchange was noticed.
  int64_t exchanges_before_ = 0;
};

}  // namespace muster

#endif  // PS_SAVE_PACE_H_
