#include "common/learn/strategy/synchronous/collective_thread.h"

#include <utility>

#include "common/core/base/check.h"

namespace muster {

CollectiveThread::CollectiveThread(std::function<absl::Status(int)> work,
                                   int item_count_max)
    : work_(std::move(work)),
      items_(item_count_max),
      thread_([this] { RunLoop(); }) {}

CollectiveThread::~CollectiveThread() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void CollectiveThread::Submit(int item) {
  absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  MUSTER_CHECK(submitted_count_ < items_.size());
  items_[submitted_count_++] = item;
}

absl::Status CollectiveThread::Drain() {
  absl::MutexLock lock(&mutex_);
  // Every collective has its own deadline, and there are few of them.
  mutex_.Await(absl::Condition(this, &CollectiveThread::IsDrained));
  done_count_ = submitted_count_ = 0;
  return status_;
}

void CollectiveThread::RunLoop() {
  mutex_.Lock();
  while (true) {
    mutex_.Await(absl::Condition(this, &CollectiveThread::HasWorkOrStopping));
    if (stopping_) break;
    const int item = items_[done_count_];
    mutex_.Unlock();
    absl::Status status = work_(item);
    mutex_.Lock();
    ++done_count_;
    if (status.ok()) continue;
    status_ = std::move(status);
    submitted_count_ = done_count_;
  }
  mutex_.Unlock();
}

}  // namespace muster
