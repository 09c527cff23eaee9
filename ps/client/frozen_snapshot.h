#ifndef PS_CLIENT_FROZEN_SNAPSHOT_H_
#define PS_CLIENT_FROZEN_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_store.h"

namespace muster {

// Ids of snapshots that will not be saved. The next freeze sends them to the
// servers, which release the snapshots. Thread-safe.
class DroppedSnapshots {
 public:
  void Add(absl::Span<const uint64_t> snapshot_ids)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    snapshot_ids_.insert(snapshot_ids_.end(), snapshot_ids.begin(),
                         snapshot_ids.end());
  }
  std::vector<uint64_t> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::exchange(snapshot_ids_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<uint64_t> snapshot_ids_ ABSL_GUARDED_BY(mutex_);
};

// A snapshot of all servers between two exchanges. The servers keep it under
// its id until it is saved or this object is destroyed.
class FrozenSnapshot {
 public:
  using Entries = std::vector<VariableSnapshot::Entry>;

  FrozenSnapshot(uint64_t id, Entries entries,
                 std::shared_ptr<DroppedSnapshots> dropped)
      : id_(id), entries_(std::move(entries)), dropped_(std::move(dropped)) {}
  ~FrozenSnapshot() {
    if (dropped_ != nullptr) dropped_->Add({id_});
  }
  FrozenSnapshot(FrozenSnapshot&&) = default;  // The source drops nothing.
  FrozenSnapshot& operator=(FrozenSnapshot&&) = delete;

  uint64_t id() const { return id_; }
  // The variables.
  const Entries& entries() const { return entries_; }

 private:
  uint64_t id_;
  Entries entries_;
  std::shared_ptr<DroppedSnapshots> dropped_;
};

}  // namespace muster

#endif  // PS_CLIENT_FROZEN_SNAPSHOT_H_
