#ifndef COORDINATOR_RELEASE_LIST_H_
#define COORDINATOR_RELEASE_LIST_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Results that workers keep and that are no longer referenced. RemoteValues may
// be destroyed while any lock is held, so this class has its own lock and never
// blocks for long.
//
// Thread-safe.
class ReleaseList {
 public:
  struct Entry {
    int worker = 0;
    uint64_t session = 0;  // The session that owns the result.
    uint64_t closure_id = 0;
  };

  void Add(const Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    entries_.push_back(entry);
  }

  // Returns and removes all entries.
  std::vector<Entry> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::exchange(entries_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COORDINATOR_RELEASE_LIST_H_
