#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_COLLECTIVE_THREAD_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_COLLECTIVE_THREAD_H_

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// A thread that runs one replica's collectives in the order of Submit(), while
// the replica continues to compute. After an error, all pending and later items
// are dropped.
//
// One thread calls Submit() and Drain(). Each call of `work` must have a
// deadline, as collectives do.
class CollectiveThread {
 public:
  // At most `item_count_max` items may be submitted between two calls of
  // Drain().
  CollectiveThread(std::function<absl::Status(int)> work, int item_count_max);

  // Finishes the current call, drops the rest, and joins.
  ~CollectiveThread();

  CollectiveThread(const CollectiveThread&) = delete;
  CollectiveThread& operator=(const CollectiveThread&) = delete;

  void Submit(int item) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until all submitted items are done. Returns the first error since
  // the start.
  absl::Status Drain() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns nullopt when the thread must stop.
  std::optional<int> AwaitItem() ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishItem(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWorkOrStopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || done_count_ < submitted_count_;
  }
  bool IsDrained() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return done_count_ == submitted_count_ || !status_.ok();
  }

  const std::function<absl::Status(int)> work_;
  absl::Mutex mutex_;
  // The first submitted_count_ items are valid; the first done_count_ are done.
  std::vector<int> items_ ABSL_GUARDED_BY(mutex_);
  size_t submitted_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t done_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_COLLECTIVE_THREAD_H_
