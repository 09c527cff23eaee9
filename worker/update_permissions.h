#ifndef WORKER_UPDATE_PERMISSIONS_H_
#define WORKER_UPDATE_PERMISSIONS_H_

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ps/client/update_gate.h"

namespace muster {

// The closures of a session that have computed gradients and wait for the
// decision of the coordinator (proto::WorkerReport.awaiting_permission).
// Thread-safe.
class UpdatePermissions final : public UpdateGate {
 public:
  explicit UpdatePermissions(int closures_per_update)
      : closures_per_update_(closures_per_update) {}

  // Sets what asks the coordinator about a closure. Must not block. Call before
  // the first closure runs. Without it all closures are permitted.
  void SetAsk(std::function<void(uint64_t closure_id)> ask)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks, and waits for the answer or for Stop(). The session bounds the wait:
  // it ends when the coordinator is silent.
  absl::Status AwaitPermission(uint64_t closure_id) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  int closures_per_update() const override { return closures_per_update_; }

  // Records the answer. Ignores closures that do not wait.
  void Answer(uint64_t closure_id, bool is_permitted)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns true if the closure was denied, once.
  bool TakeDenied(uint64_t closure_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all waits, present and future.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class State { kWaiting, kPermitted, kDenied };

  const int closures_per_update_;
  absl::Mutex mutex_;
  std::function<void(uint64_t)> ask_ ABSL_GUARDED_BY(mutex_);  // May be null.
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Closures that wait, and denied ones.
  absl::flat_hash_map<uint64_t, State> closures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // WORKER_UPDATE_PERMISSIONS_H_
