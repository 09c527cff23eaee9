#ifndef COMMON_CORE_SYSTEM_HELD_LOCK_H_
#define COMMON_CORE_SYSTEM_HELD_LOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Unlocks a mutex that the caller has locked, at the end of its scope:
//
//   if (!mutex.TryLock()) return;
//   const HeldLock lock(&mutex);
class ABSL_SCOPED_LOCKABLE HeldLock {
 public:
  explicit HeldLock(absl::Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)
      : mutex_(*mutex) {}
  ~HeldLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  absl::Mutex& mutex_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_HELD_LOCK_H_
