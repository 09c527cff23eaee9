#ifndef COORDINATOR_CLOSURE_ID_RESERVATION_H_
#define COORDINATOR_CLOSURE_ID_RESERVATION_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Reserves the ids of closures in blocks before they are used. A later
// coordinator of the job begins at the limit of the last reservation, and so
// above all ids that this one has used. It does not have to know which.
//
// This is necessary because servers take a push with an id that was used for a
// repetition: they acknowledge it and do not apply it (ps/push_ledger.h).
//
// Thread-safe.
class ClosureIdReservation {
 public:
  // Ids in a block.
  static constexpr uint64_t kBlockSize = 65536;

  struct Options {
    // Neither this id nor a higher one has been reserved before. At least 1.
    uint64_t first_id = 1;
    // Records that all ids below `limit` may have been used. Returns OK when
    // the record survives the loss of this process. Null if no other
    // coordinator continues the job; then the ids have no limit.
    std::function<absl::Status(uint64_t limit)> record = nullptr;
  };

  explicit ClosureIdReservation(const Options& options);

  // Returns the lowest id that is not reserved.
  uint64_t limit() const { return limit_.load(std::memory_order_acquire); }

  // Reserves the block of `id` and all blocks below it. Blocks while they are
  // recorded.
  //   any  the error of Options::record; nothing more is reserved
  absl::Status Reserve(uint64_t id) ABSL_LOCKS_EXCLUDED(recording_);

 private:
  const Options options_;
  absl::Mutex recording_;  // Held while a limit is recorded.
  std::atomic<uint64_t> limit_;
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_ID_RESERVATION_H_
