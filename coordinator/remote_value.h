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

// What became of one closure. Written once by the queue, read by whoever holds
// the RemoteValue. Thread-safe.
class RemoteValueState {
 public:
  // Results too large to come along stay with the worker that made them.
  struct Keeper {
    int worker_index = -1;
    uint64_t worker_incarnation = 0;
    // The conversation with the worker, with which they are lost.
    uint64_t session = 0;
  };
  struct Kept {
    Keeper keeper;
    // Called when nobody can ask for the results any more. Must not wait.
    std::function<void()> release;
  };

  explicit RemoteValueState(uint64_t closure_id) : closure_id_(closure_id) {}
  ~RemoteValueState();

  RemoteValueState(const RemoteValueState&) = delete;
  RemoteValueState& operator=(const RemoteValueState&) = delete;

  uint64_t closure_id() const { return closure_id_; }

  // The first of these wins; later calls change nothing.
  void SetResults(std::vector<Tensor> results) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetKept(Kept kept) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetError(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Puts fetched results in the place of kept ones.
  void SetFetched(std::vector<Tensor> results) ABSL_LOCKS_EXCLUDED(mutex_);

  bool done() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until the closure has finished; false when `deadline` came first.
  bool AwaitDone(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The rest needs done().
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of results that a worker keeps.
  std::optional<Keeper> keeper() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Tensor> results() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsDone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return done_; }

  const uint64_t closure_id_;
  mutable absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> results_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // Or null.
};

// The result of a scheduled closure, which may not exist yet. A value, cheap to
// copy; dropping the last copy tells the worker to forget the result.
//
// Equivalent to: tf.distribute.experimental.coordinator.RemoteValue.
class RemoteValue {
 public:
  RemoteValue() = default;  // Of no closure.
  explicit RemoteValue(std::shared_ptr<RemoteValueState> state)
      : state_(std::move(state)) {}

  bool valid() const { return state_ != nullptr; }

  // Names the closure for all time; a retry has the same.
  uint64_t closure_id() const { return state_->closure_id(); }

  // Finished, failed or cancelled.
  bool done() const { return state_->done(); }

  const std::shared_ptr<RemoteValueState>& state() const { return state_; }

 private:
  std::shared_ptr<RemoteValueState> state_;
};

}  // namespace muster

#endif  // COORDINATOR_REMOTE_VALUE_H_
