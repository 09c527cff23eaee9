#ifndef COMMON_CORE_SYSTEM_THREAD_POOL_H_
#define COMMON_CORE_SYSTEM_THREAD_POOL_H_

#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// A fixed number of threads that run tasks in first-in, first-out order.
// Thread-safe.
class ThreadPool {
 public:
  // `name` is shown in debuggers; at most 15 characters are kept.
  ThreadPool(const std::string& name, int thread_count);

  // Runs all scheduled tasks, then joins the threads.
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void Schedule(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls body(begin, end) on slices of [0, count) of at least `grain`
  // elements, on the pool and on the calling thread. Returns when all are done.
  // `body` must not wait for other work of this pool.
  void ParallelFor(int64_t count, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int thread_count() const { return static_cast<int>(threads_.size()); }

 private:
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWorkOrStopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // Constant after construction.
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_THREAD_POOL_H_
