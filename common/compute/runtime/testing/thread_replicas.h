#ifndef COMMON_COMPUTE_RUNTIME_TESTING_THREAD_REPLICAS_H_
#define COMMON_COMPUTE_RUNTIME_TESTING_THREAD_REPLICAS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/runtime/replica_link.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// Links between replicas that are threads of one test. They reduce without
// optimizations, in replica order and double precision. If a replica is missing
// for a minute, the waiting replicas fail with kDeadlineExceeded.
//
// Thread-safe; each link belongs to one thread.
class ThreadReplicas {
 public:
  explicit ThreadReplicas(int count);
  ~ThreadReplicas();

  ThreadReplicas(const ThreadReplicas&) = delete;
  ThreadReplicas& operator=(const ThreadReplicas&) = delete;

  ReplicaLink* link(int replica) const;

 private:
  class Link;

  // Waits until all replicas have passed a value, calls `read` with all values,
  // and returns when all replicas have read them. The last replica to arrive
  // may read first.
  absl::Status Exchange(
      int replica, const Tensor& value,
      absl::FunctionRef<absl::Status(absl::Span<const Tensor>)> read)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool AllAre(int phase) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status WaitForAll(int replica, int phase)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::vector<Tensor> values_ ABSL_GUARDED_BY(mutex_);
  // How often each replica has passed a value, plus how often it has read.
  std::vector<int> phases_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_TESTING_THREAD_REPLICAS_H_
