#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_COLLECTIVE_THREAD_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_COLLECTIVE_THREAD_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// A thread that does one replica's collectives, one after another in the order
// of Submit(), while the replica goes on computing. After an error what was
// submitted is dropped, and so is all that comes later.
//
// Submit() and Drain() belong to one thread; each call of `work` ends by
// itself, as collectives do.
class CollectiveThread {
 public:
  // `item_count_max` numbers may be submitted between one Drain() and the next.
  CollectiveThread(std::function<absl::Status(int)> work, int item_count_max);

  // Finishes the call under way, drops the rest, and joins.
  ~CollectiveThread();

  CollectiveThread(const CollectiveThread&) = delete;
  CollectiveThread& operator=(const CollectiveThread&) = delete;

  void Submit(int item) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until all that was submitted is done, and returns the first error
  // ever.
  absl::Status Drain() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWorkOrStopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || done_count_ < submitted_count_;
  }
  bool IsDrained() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return done_count_ == submitted_count_ || !status_.ok();
  }

  const std::function<absl::Status(int)> work_;
  absl::Mutex mutex_;
  // The first submitted_count_ are valid; the first done_count_ are done.
  std::vector<int> items_ ABSL_GUARDED_BY(mutex_);
  size_t submitted_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t done_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_COLLECTIVE_THREAD_H_
