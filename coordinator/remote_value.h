#ifndef COORDINATOR_REMOTE_VALUE_H_
#define COORDINATOR_REMOTE_VALUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The outcome of one closure. The queue sets it once; RemoteValues read it.
// Thread-safe.
class RemoteValueState {
 public:
  // Identifies the worker that keeps results that are too large for a report.
  struct Keeper {
    int worker_index = -1;
    uint64_t worker_incarnation = 0;
    // The session with the worker. The results are lost when it ends.
    uint64_t session = 0;
  };
  struct Kept {
    Keeper keeper;
    // Called when the results are no longer referenced. Must not block.
    std::function<void()> release;
  };

  explicit RemoteValueState(uint64_t closure_id) : closure_id_(closure_id) {}
  ~RemoteValueState();

  RemoteValueState(const RemoteValueState&) = delete;
  RemoteValueState& operator=(const RemoteValueState&) = delete;

  uint64_t closure_id() const { return closure_id_; }

  // Only the first call of these methods has an effect.
  void SetResults(std::vector<Tensor> results) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetKept(Kept kept) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetError(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces kept results by fetched ones.
  void SetFetched(std::vector<Tensor> results) ABSL_LOCKS_EXCLUDED(mutex_);

  bool done() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the closure has finished. Returns false at `deadline`.
  bool AwaitDone(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The functions below require done().
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the keeper if a worker keeps the results.
  std::optional<Keeper> keeper() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Tensor> results() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsDone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return done_; }

  const uint64_t closure_id_;
  mutable absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> results_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // Null if not kept.
};

// A handle to the result of a scheduled closure, which may not have finished.
// Cheap to copy. Destroying the last copy releases the result on the worker.
//
// Equivalent to: tf.distribute.experimental.coordinator.RemoteValue.
class RemoteValue {
 public:
  RemoteValue() = default;  // Not valid().
  explicit RemoteValue(std::shared_ptr<RemoteValueState> state)
      : state_(std::move(state)) {}

  bool valid() const { return state_ != nullptr; }

  // Returns the id of the closure; a retry has the same id.
  uint64_t closure_id() const { return state_->closure_id(); }

  // True if the closure has finished, failed or been cancelled.
  bool done() const { return state_->done(); }

  const std::shared_ptr<RemoteValueState>& state() const { return state_; }

 private:
  std::shared_ptr<RemoteValueState> state_;
};

}  // namespace muster

#endif  // COORDINATOR_REMOTE_VALUE_H_
