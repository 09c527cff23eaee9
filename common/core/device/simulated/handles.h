#ifndef COMMON_CORE_DEVICE_SIMULATED_HANDLES_H_
#define COMMON_CORE_DEVICE_SIMULATED_HANDLES_H_

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster::simulated {

// The handles of one kind that a driver has returned. Any other pointer is
// invalid. Thread-safe.
template <typename T>
class Handles {
 public:
  T* Add(T value) {
    const absl::MutexLock lock(&mutex_);
    return handles_.emplace(new T(std::move(value))).first->get();
  }
  bool Contains(const T* handle) const {
    const absl::MutexLock lock(&mutex_);
    return Find(handle) != handles_.end();
  }
  bool Remove(const T* handle) {
    const absl::MutexLock lock(&mutex_);
    const auto found = Find(handle);
    if (found == handles_.end()) return false;
    handles_.erase(found);
    return true;
  }

 private:
  using Set = std::set<std::unique_ptr<T>>;

  typename Set::const_iterator Find(const T* handle) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::find_if(
        handles_.begin(), handles_.end(),
        [&](const auto& owned) { return owned.get() == handle; });
  }

  mutable absl::Mutex mutex_;
  Set handles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_HANDLES_H_
