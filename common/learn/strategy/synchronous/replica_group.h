#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_GROUP_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_GROUP_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/synchronous/replica_threads.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// This process' replicas among all synchronous replicas, with a communicator
// and a thread for each.
//
// Thread-safe; Run() calls run one at a time.
class ReplicaGroup {
 public:
  // By local replica. Every worker has the same number of replicas. Replica i
  // of worker w has rank w * replicas per worker + i.
  using Communicators = std::vector<std::shared_ptr<Communicator>>;

  struct Options {
    int worker_index = 0;
    int worker_count = 1;
    // Creates a new group after an error, which ends the communicators. If
    // null, the error is final. Only for a group within this process.
    std::function<absl::StatusOr<Communicators>()> renew = nullptr;
  };

  //   kInvalidArgument  ranks and sizes do not match this numbering
  static absl::StatusOr<std::unique_ptr<ReplicaGroup>> Create(
      Communicators communicators, Options options);

  int local_count() const { return threads_.replica_count(); }
  int size() const { return local_count() * options_.worker_count; }
  int worker_index() const { return options_.worker_index; }
  int worker_count() const { return options_.worker_count; }
  InputPlacement placement() const {
    return {worker_count(), worker_index(), local_count()};
  }

  Communicators communicators() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls work(replica) on the thread of each local replica. Returns the first
  // error. The error ends the communicators, so that no replica waits for the
  // one that failed.
  absl::Status Run(absl::FunctionRef<absl::Status(int replica)> work)
      ABSL_LOCKS_EXCLUDED(run_mutex_, mutex_);

  // Ends the current collectives and all later ones with `status`, on every
  // worker.
  void Abort(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Recreates the group if it has ended. Returns true if it did.
  //   errors  the error that ended the group, if it cannot be recreated
  absl::StatusOr<bool> Renew() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ReplicaGroup(Communicators communicators, Options options);

  const Options options_;
  absl::Mutex run_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  ReplicaThreads threads_;
  mutable absl::Mutex mutex_;
  Communicators communicators_ ABSL_GUARDED_BY(mutex_);
  // The error that ended the group.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_GROUP_H_
