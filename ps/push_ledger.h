#ifndef PS_PUSH_LEDGER_H_
#define PS_PUSH_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Identifies the updates of one exchange. A retried step sends the same
// exchanges with the same ids. Step 0 is for updates that are never sent again.
struct PushId {
  uint64_t step_id = 0;
  uint32_t exchange_index = 0;
};

// Remembers which pushes were applied. A push that is sent again, because its
// answer was lost or its step was retried on another worker, is acknowledged
// without being applied twice.
//
// The low-water mark bounds the memory: all steps below it have finished, so a
// push of such a step is late and is not applied.
//
// Thread-safe.
class PushLedger {
 public:
  explicit PushLedger(size_t remembered_count_max = size_t{1} << 22)
      : remembered_count_max_(remembered_count_max) {}

  // Returns true if the caller must apply the push and then call Finish(). If
  // another thread is applying the same push, blocks until that thread calls
  // Finish(), and returns false: an acknowledgement must not precede the
  // update.
  //   kResourceExhausted  remembered_count_max pushes are remembered, because
  //                       the low-water mark does not advance
  absl::StatusOr<bool> Claim(const PushId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const PushId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Call instead of Finish() if the push could not be applied: the next attempt
  // applies it.
  void GiveUp(const PushId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Remembers a push that was applied by another process.
  void Restore(const PushId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all pushes that have been applied, and the mark.
  std::vector<PushId> List(uint64_t* low_water_mark) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Raises the mark and returns true. A lower `step_id` has no effect.
  bool AdvanceLowWaterMark(uint64_t step_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets all pushes and resets the mark.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the highest step of a remembered push; 0 if there is none.
  uint64_t newest_step_id() const ABSL_LOCKS_EXCLUDED(mutex_);

  size_t remembered_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Maps an exchange index to true if the push has been applied, and to false
  // while it is being applied.
  using Exchanges = absl::flat_hash_map<uint32_t, bool>;

  // True unless the push is being applied.
  bool IsDecided(const PushId& id) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const size_t remembered_count_max_;
  mutable absl::Mutex mutex_;
  uint64_t low_water_mark_ ABSL_GUARDED_BY(mutex_) = 0;
  // Ordered by step, so that advancing the mark costs only what it removes.
  std::map<uint64_t, Exchanges> steps_ ABSL_GUARDED_BY(mutex_);
  size_t remembered_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // PS_PUSH_LEDGER_H_
