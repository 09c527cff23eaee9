#ifndef COORDINATOR_PARAMETER_SERVER_STRATEGY_H_
#define COORDINATOR_PARAMETER_SERVER_STRATEGY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/compute/graph/graph.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/system/clock.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/net/process/task.h"
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"

namespace muster {

class ClusterConnection;

struct ParameterServerStrategyOptions {
  // How many shards a variable has; null: one.
  std::shared_ptr<const Partitioner> partitioner = nullptr;
  PlacementPolicy placement = PlacementPolicy::kGreedyByBytes;
  // Steps that one worker runs at once.
  int closures_in_flight = 1;
  // A worker or server silent for longer is lost.
  absl::Duration heartbeat_timeout = absl::Seconds(5);
  // A step that outlives so many workers is the suspect, not they.
  int attempts_per_step_max = 4;
  // Batches that a worker makes ready ahead of its step.
  int prefetch_batch_count = 2;
  // A folder that all tasks see, where checkpoints are kept from which training
  // continues after the loss of a parameter server: one at its beginning, and
  // one after every interval. Empty: there are those that callbacks write, and
  // the variables' first values.
  std::string checkpoint_dir = "";
  absl::Duration checkpoint_interval = absl::Minutes(1);
  // Training begins when so many workers of the cluster are there, and all
  // parameter servers; the others join it when they come. 0: all workers.
  int min_workers = 0;
  // Evaluates and predicts on this machine, where batches cost more to send
  // than to work on, and not on workers.
  bool evaluates_on_coordinator = false;
  // Train loops draw their batches here, too, and each is used once in a pass,
  // in place of copies of the data in the workers.
  bool dispatches_batches = false;
};

// Asynchronous training: variables on parameter servers, steps on workers,
// everything else here, on the coordinator.
//
// A train loop gives each worker its own copy of the data, each shuffled in
// another order, and steps apply their updates as they finish. All other loops,
// and train loops with `dispatches_batches`, draw their batches here and send
// them to whichever worker is free, so that each element is seen once.
//
// A parameter server that is lost and started again takes training back to the
// newest checkpoint (docs/design/recovery.md); one that stays away ends it.
//
// Equivalent to: tf.distribute.ParameterServerStrategy. Thread-safe.
class ParameterServerStrategy final : public Strategy {
 public:
  // Waits for every worker and parameter server of the task's cluster, naming
  // the missing ones in the log. The job ends with the task, not with the
  // strategy.
  //   kInvalidArgument     the cluster has no worker or no ps, or an option is
  //                        out of range
  //   kDeadlineExceeded    names the missing tasks, and why; exit status
  //                        138
  //   kFailedPrecondition  a task refused: it has another cluster in mind
  static absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Create(
      Task& task, const ParameterServerStrategyOptions& options = {});

  // Over a connection that is open.
  ParameterServerStrategy(std::shared_ptr<ClusterConnection> connection,
                          const ParameterServerStrategyOptions& options,
                          Clock* clock)
      : connection_(std::move(connection)), options_(options), clock_(clock) {}

  absl::string_view name() const override { return "parameter_server"; }
  int num_replicas_in_sync() const override { return 1; }
  bool draws_from_copies() const override { return true; }
  VariableStore& variables() override;
  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph& step,
                                                       const Dataset& dataset,
                                                       LoopKind kind) override;
  // The coordinator is the only process that runs the program.
  const WorkerAgreement& agreement() const override { return sole_worker_; }
  TrainingRecovery* recovery() override;
  StrategyReport Report() const override;

  const std::shared_ptr<ClusterConnection>& connection() const {
    return connection_;
  }

 private:
  const std::shared_ptr<ClusterConnection> connection_;
  const ParameterServerStrategyOptions options_;
  Clock* const clock_;
  const SoleWorker sole_worker_;
};

}  // namespace muster

#endif  // COORDINATOR_PARAMETER_SERVER_STRATEGY_H_
