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
#include "coordinator/function.h"
#include "coordinator/parameter_server_strategy.h"
#include "coordinator/per_worker.h"
#include "coordinator/remote_value.h"
#include "coordinator/rollback_point.h"

namespace muster {

class ClusterConnection;
struct ClosureWork;
struct ShardingRequest;

using WorkerDatasetFunction = std::function<Dataset(const InputContext&)>;

// Schedules training steps on workers. A step may be attempted more than once;
// its updates are applied exactly once.
//
// The coordinator sends control messages only. Variables are stored on
// parameter servers, iterators on workers, and tensors travel directly between
// the two.
//
// After the loss of a worker its steps are retried. After the loss of a
// parameter server training is rolled back to the newest checkpoint and
// resumes. If the server does not restart in time, the job ends: every call
// returns an error that names the server and its variables.
//
// Deadlines are times of absl::Now(). Without a deadline, a call blocks for up
// to one hour.
//
// Equivalent to: tf.distribute.coordinator.ClusterCoordinator. Thread-safe.
class ClusterCoordinator {
 public:
  // All coordinators of one strategy share its workers and its queue of
  // closures.
  explicit ClusterCoordinator(ParameterServerStrategy& strategy);

  // Returns a function of Values and Iterators; see Function::Of(). It is
  // traced when it is first scheduled.
  template <typename Callable>
  Function Trace(Callable callable) const {
    return Function::Of("step", std::move(callable));
  }

  // Queues a call. Does not block unless the queue is full.
  //   kInvalidArgument   the arguments do not match, or an error in the traced
  //                      code
  //   kDeadlineExceeded  the queue stayed full; the message names what it waits
  //                      for
  //   kUnimplemented     the strategy is synchronous
  //   any                an earlier closure failed. As with Join(), all queued
  //                      closures are cancelled, nothing runs, the failure is
  //                      cleared, and training may continue
  absl::StatusOr<RemoteValue> Schedule(
      const Function& function, const std::vector<FunctionArgument>& arguments,
      std::optional<absl::Time> deadline = std::nullopt);

  // Blocks until no closure is queued or running. Returns the first failure
  // since the last one returned, with the others in its message, and clears
  // them, so that training may continue; except after the permanent loss of a
  // parameter server.
  //   kDeadlineExceeded  names the tasks that it waits for
  absl::Status Join(std::optional<absl::Time> deadline = std::nullopt);

  // Returns true if no closure is queued or running. Does not block. Reports
  // failures as Join() does.
  absl::StatusOr<bool> Done();

  // Blocks until the closure has finished and returns its result. Fetch() is
  // for functions that return one tensor.
  //   kDeadlineExceeded  names the task that it waits for
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

  // Cancels closures that have not been started. Running closures finish.
  void Cancel(const RemoteValue& value);
  void CancelAll();

  // Creates an iterator on each worker, over all of `dataset` or over the
  // dataset that `make` returns for that worker. A restarted worker gets a new
  // iterator.
  //   kFailedPrecondition  the dataset contains C++ functions and cannot be
  //                        sent
  //   kInvalidArgument     an error in the definition of the dataset
  absl::StatusOr<PerWorker<Iterator>> CreatePerWorkerDataset(
      const Dataset& dataset);
  absl::StatusOr<PerWorker<Iterator>> CreatePerWorkerDataset(
      const WorkerDatasetFunction& make);

  int worker_count() const;

  // Calls `handler` on another thread after each rollback, when all servers
  // have been restored and before closures run. Unfinished closures stay
  // scheduled. The effects of the closures in the report are undone; the caller
  // must schedule as many again. `handler` must not call this object. Null
  // removes the handler. Blocks until a call of the previous handler has
  // returned.
  //
  // A read of variables (RecoverableStore) never returns values from after a
  // rollback before `handler` has returned. A program that sees no new rollback
  // after a read has therefore read the effects of its closures.
  //
  // Without a handler a rollback is reported as the failure of a closure
  // (kAborted) by the next call, and all scheduled closures are cancelled.
  void OnRollback(std::function<void(const RollbackReport&)> handler);

  // Writes a checkpoint of all variables and slots to `folder` as `ckpt-<n>`
  // and returns its prefix. All tasks need access to the folder. Training may
  // be rolled back to this checkpoint. Waits for running steps; the next steps
  // run while the checkpoint is written.
  //   kAborted  a parameter server was lost
  //   others    errors of the disk; the message names the file and the task
  absl::StatusOr<std::string> SaveCheckpoint(const std::string& folder);

 private:
  absl::StatusOr<ClosureWork> MakeWork(
      const Function& function, const std::vector<FunctionArgument>& arguments);
  // One plan is for all workers.
  absl::StatusOr<PerWorker<Iterator>> AddIterator(ShardingRequest request,
                                                  int plan_count);

  const std::shared_ptr<ClusterConnection> connection_;
};

}  // namespace muster

#endif  // COORDINATOR_CLUSTER_COORDINATOR_H_
