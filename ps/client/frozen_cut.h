#ifndef PS_CLIENT_FROZEN_CUT_H_
#define PS_CLIENT_FROZEN_CUT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_store.h"

namespace muster {

// Cuts that nobody will save any more. Servers are told with the next freeze,
// and let go of those that they still keep. Thread-safe.
class DroppedCuts {
 public:
  void Add(absl::Span<const uint64_t> cut_ids) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    cut_ids_.insert(cut_ids_.end(), cut_ids.begin(), cut_ids.end());
  }
  std::vector<uint64_t> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::exchange(cut_ids_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<uint64_t> cut_ids_ ABSL_GUARDED_BY(mutex_);
};

// The state of all servers between two exchanges, which they keep under this
// name until it is saved or this object is gone.
class FrozenCut {
 public:
  using Entries = std::vector<VariableSnapshot::Entry>;

  FrozenCut(uint64_t id, Entries entries, std::shared_ptr<DroppedCuts> dropped)
      : id_(id), entries_(std::move(entries)), dropped_(std::move(dropped)) {}
  ~FrozenCut() {
    if (dropped_ != nullptr) dropped_->Add({id_});
  }
  FrozenCut(FrozenCut&&) = default;  // Leaves nothing to be dropped.
  FrozenCut& operator=(FrozenCut&&) = delete;

  uint64_t id() const { return id_; }
  // What variables there are.
  const Entries& entries() const { return entries_; }

 private:
  uint64_t id_;
  Entries entries_;
  std::shared_ptr<DroppedCuts> dropped_;
};

}  // namespace muster

#endif  // PS_CLIENT_FROZEN_CUT_H_
