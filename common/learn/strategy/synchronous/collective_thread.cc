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
  // Waits without a deadline: each collective has one, and the number of items
  // is limited.
  mutex_.Await(absl::Condition(this, &CollectiveThread::IsDrained));
  done_count_ = submitted_count_ = 0;
  return status_;
}

void CollectiveThread::RunLoop() {
  while (const std::optional<int> item = AwaitItem()) FinishItem(work_(*item));
}

std::optional<int> CollectiveThread::AwaitItem() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CollectiveThread::HasWorkOrStopping));
  if (stopping_) return std::nullopt;
  return items_[done_count_];
}

void CollectiveThread::FinishItem(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  ++done_count_;
  if (status.ok()) return;
  status_ = std::move(status);
  submitted_count_ = done_count_;
}

}  // namespace muster
