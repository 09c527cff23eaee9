#ifndef PS_PUSH_LEDGER_H_
#define PS_PUSH_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Names the updates of one exchange for all time: a second attempt at a step
// makes the same exchanges and gives them the same names. Step 0 stands for
// updates that are never sent again.
struct PushId {
  uint64_t step_id = 0;
  uint32_t exchange_index = 0;
};

// Remembers which pushes were applied, so that one whose answer was lost, or
// whose step was given to another worker, is acknowledged and not applied
// again.
//
// The low-water mark bounds that memory: steps below it have finished, so what
// still comes from one is a straggler's and is never applied.
//
// Thread-safe.
class PushLedger {
 public:
  explicit PushLedger(size_t remembered_count_max = size_t{1} << 22)
      : remembered_count_max_(remembered_count_max) {}

  // Whether the caller is to apply the push, and then call Finish(). When
  // another thread is applying this very push, waits until it has: an
  // acknowledgement must not overtake the update.
  //   kResourceExhausted  too much is remembered: the mark does not move
  absl::StatusOr<bool> Claim(const PushId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const PushId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // The mark never falls.
  void AdvanceLowWaterMark(uint64_t step_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets everything: the job is over.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t remembered_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Exchange index -> has been applied; false while it is being applied.
  using Exchanges = absl::flat_hash_map<uint32_t, bool>;

  bool IsApplied(const PushId& id) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const size_t remembered_count_max_;
  mutable absl::Mutex mutex_;
  uint64_t low_water_mark_ ABSL_GUARDED_BY(mutex_) = 0;
  // By step, so that forgetting costs no more than what is forgotten.
  std::map<uint64_t, Exchanges> steps_ ABSL_GUARDED_BY(mutex_);
  size_t remembered_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // PS_PUSH_LEDGER_H_
