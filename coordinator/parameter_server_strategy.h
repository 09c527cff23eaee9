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
  // Determines the number of shards of each variable; null for one shard.
  std::shared_ptr<const Partitioner> partitioner = nullptr;
  PlacementPolicy placement = PlacementPolicy::kGreedyByBytes;
  // Steps that one worker runs concurrently.
  int closures_in_flight = 1;
  // A worker or server that is silent for longer is lost.
  absl::Duration heartbeat_timeout = absl::Seconds(5);
  // A step fails after this many workers were lost while running it, because it
  // probably caused the losses.
  int attempts_per_step_max = 4;
  // Batches that a worker prepares ahead of its step.
  int prefetch_batch_count = 2;
  // A folder that all tasks can access, for checkpoints from which training
  // resumes after the loss of a parameter server. One is written at the
  // beginning of training and one after every interval. If empty, training
  // resumes from checkpoints that callbacks write, or from the initial values
  // of the variables.
  std::string checkpoint_dir = "";
  absl::Duration checkpoint_interval = absl::Minutes(1);
  // Training begins when this many workers and all parameter servers are
  // connected. Other workers join when they connect. 0 stands for all workers.
  int min_workers = 0;
  // Number of ps tasks that have the state of each server: 1, or 2. With 2, a
  // cluster of 2N ps tasks has N servers, and task i + N holds a copy of server
  // i. When one of them is lost, the other one serves, and nothing is undone.
  int server_copy_count = 1;
  // If true, the coordinator evaluates and predicts instead of the workers.
  // This is faster if sending a batch costs more than processing it.
  bool evaluates_on_coordinator = false;
  // If true, the coordinator also draws the batches of train loops, and each
  // batch is used once in a pass. If false, each worker draws from its own copy
  // of the data.
  bool dispatches_batches = false;
  // If true, training is synchronous: each update is the mean of the gradients
  // of W - backup_worker_count steps, where W is the number of workers, and all
  // of them use the weights before the update. Only for Fit().
  bool is_synchronous = false;
  // How many workers may be slow without delaying updates. The gradients that
  // come too late for an update are dropped, and their steps are run again.
  int backup_worker_count = 0;
};

// Variables on parameter servers, steps on workers, and the rest of the program
// on the coordinator. Training is asynchronous by default: each gradient is
// applied when it has been computed. docs/design/synchronous_servers.md has
// synchronous training.
//
// In a train loop each worker has its own copy of the data, shuffled in a
// different order, and steps apply their updates as they finish. For all other
// loops, and for train loops with `dispatches_batches`, the coordinator draws
// the batches and sends each to a free worker, so that each element is used
// once.
//
// If a parameter server is lost and restarted, training is rolled back to the
// newest checkpoint (docs/design/recovery.md). If it does not restart in time,
// training ends.
//
// Equivalent to: tf.distribute.ParameterServerStrategy. Thread-safe.
class ParameterServerStrategy final : public Strategy {
 public:
  // Waits for the parameter servers and workers of the task's cluster, and logs
  // which are missing. The job ends when the task ends, not when the strategy
  // is destroyed.
  //   kInvalidArgument     the cluster has no worker or no ps, or an option is
  //                        out of range
  //   kDeadlineExceeded    names the missing tasks, and why; exit status
  //                        138
  //   kFailedPrecondition  a task refused: its cluster configuration differs
  static absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Create(
      Task& task, const ParameterServerStrategyOptions& options = {});

  // Uses an open connection.
  ParameterServerStrategy(std::shared_ptr<ClusterConnection> connection,
                          const ParameterServerStrategyOptions& options,
                          Clock* clock);

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
