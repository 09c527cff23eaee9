#ifndef COORDINATOR_CLUSTER_COORDINATOR_H_
#define COORDINATOR_CLUSTER_COORDINATOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/function.h"
#include "coordinator/parameter_server_strategy.h"
#include "coordinator/per_worker.h"
#include "coordinator/per_worker_dataset.h"
#include "coordinator/remote_value.h"
#include "coordinator/server_recovery.h"

namespace muster {

// Hands each step of training to whichever worker is free. A step may be
// attempted more than once; its updates are applied exactly once.
//
// Only control passes through here: variables live on parameter servers,
// iterators on workers, and tensors travel between those two directly.
//
// Losing a worker costs a retry. After the loss of a parameter server training
// is rolled back to the newest checkpoint, and goes on: see OnRollback(). One
// that stays away ends the job: every call says which, and what went with it.
//
// Deadlines are points of absl::Now(). Without one, a call waits up to an hour.
//
// Equivalent to: tf.distribute.coordinator.ClusterCoordinator. Thread-safe.
class ClusterCoordinator {
 public:
  // All coordinators of one strategy share its workers and its queue.
  explicit ClusterCoordinator(ParameterServerStrategy& strategy);

  // A function of Values and Iterators; see Function::Of(). Traced when it is
  // first scheduled.
  template <typename Callable>
  Function Trace(Callable callable) const {
    return Function::Of("step", std::move(callable));
  }

  // Queues a call; returns at once unless the queue is full.
  //   kInvalidArgument   the arguments do not fit, or the traced code has a
  //                      mistake
  //   kDeadlineExceeded  the queue stayed full; says what it waits for
  //   any                an earlier closure failed. The call has taken that
  //                      failure as Join() would have: everything queued is
  //                      cancelled, nothing runs, and training may go on
  absl::StatusOr<RemoteValue> Schedule(
      const Function& function, const std::vector<FunctionArgument>& arguments,
      std::optional<absl::Time> deadline = std::nullopt);

  // Waits until nothing is queued or running. Returns the first failure since
  // the last one returned, with the others listed in its message, and forgets
  // them, so that training may go on; not so for a lost parameter server.
  //   kDeadlineExceeded  says whom it waits for
  absl::Status Join(std::optional<absl::Time> deadline = std::nullopt);

  // Whether nothing is queued or running. Does not wait. Failures as Join().
  absl::StatusOr<bool> Done();

  // Waits for the closure and brings its result. Fetch() is for functions that
  // return one tensor.
  //   kDeadlineExceeded  says whom it waits for
  //   kUnavailable       the worker that kept a large result is lost
  //   kCancelled         the closure was cancelled
  //   any                the closure failed
  absl::StatusOr<Tensor> Fetch(
      const RemoteValue& value,
      std::optional<absl::Time> deadline = std::nullopt);
  absl::StatusOr<std::vector<Tensor>> FetchAll(
      const RemoteValue& value,
      std::optional<absl::Time> deadline = std::nullopt);
  absl::StatusOr<std::vector<Tensor>> Fetch(
      absl::Span<const RemoteValue> values,
      std::optional<absl::Time> deadline = std::nullopt);

  // Best effort: a closure that runs already is not stopped, and finishes.
  void Cancel(const RemoteValue& value);
  void CancelAll();

  // One iterator on each worker, over all of `dataset` or over what `make`
  // makes for that worker. A worker that comes back gets a new one.
  //   kFailedPrecondition  the dataset holds C++ functions and cannot be sent
  //   kInvalidArgument     a mistake made while chaining
  absl::StatusOr<PerWorker<Iterator>> CreatePerWorkerDataset(
      const Dataset& dataset);
  absl::StatusOr<PerWorker<Iterator>> CreatePerWorkerDataset(
      const WorkerDatasetFunction& make);

  int worker_count() const;

  // Tells `handler` of rollbacks, on another thread, when all servers are back
  // where they were and before closures go on. Closures that had not succeeded
  // stay scheduled; those of the report had, and what they did is undone: it is
  // for the caller to schedule as many again. `handler` must not call this
  // object. Null takes it back.
  //
  // Without a handler a rollback is a failure (kAborted) as of a closure, of
  // which the next call tells, and everything that was scheduled is cancelled.
  void OnRollback(std::function<void(const RollbackReport&)> handler);

  // Writes a checkpoint of all variables and slots to `folder`, which all tasks
  // see, as `ckpt-<n>`; training may be rolled back to it. Waits for steps
  // under way, and writes while the next ones run. Returns its prefix.
  //   kAborted  a parameter server was lost
  //   others    of the disk; name file and task
  absl::StatusOr<std::string> SaveCheckpoint(const std::string& folder);

 private:
  absl::StatusOr<ClosureWork> MakeWork(
      const Function& function, const std::vector<FunctionArgument>& arguments);

  const std::shared_ptr<ClusterConnection> connection_;
};

}  // namespace muster

#endif  // COORDINATOR_CLUSTER_COORDINATOR_H_
