#include "common/core/system/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {
namespace {

// As absl::BlockingCounter, which is in a library that the race detector cannot
// look into.
class Countdown {
 public:
  explicit Countdown(int count) : count_(count), is_done_(count == 0) {}

  void Decrement() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    absl::MutexLock lock(&mutex_);
    is_done_ = true;
  }
  void Wait() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_done_));
  }

 private:
  std::atomic<int> count_;
  absl::Mutex mutex_;
  bool is_done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ThreadPool::ThreadPool(const std::string& name, int thread_count) {
  constexpr size_t kThreadNameLengthMax = 15;
  for (int i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this] { RunLoop(); });
    pthread_setname_np(threads_.back().native_handle(),
                       name.substr(0, kThreadNameLengthMax).c_str());
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Schedule(absl::AnyInvocable<void()> work) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(work));
}

void ThreadPool::RunLoop() {
  while (true) {
    absl::AnyInvocable<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ThreadPool::HasWorkOrStopping));
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

void ThreadPool::ParallelFor(
    int64_t count, int64_t grain,
    absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  const int64_t piece_count_max = thread_count() + 1;
  const int64_t piece =
      std::max(grain, (count + piece_count_max - 1) / piece_count_max);
  if (count <= piece) {
    if (count > 0) body(0, count);
    return;
  }
  Countdown unfinished(static_cast<int>((count + piece - 1) / piece) - 1);
  for (int64_t begin = piece; begin < count; begin += piece) {
    const int64_t end = std::min(count, begin + piece);
    Schedule([&unfinished, body, begin, end] {
      body(begin, end);
      unfinished.Decrement();
    });
  }
  body(0, piece);
  unfinished.Wait();
}

}  // namespace muster
