#ifndef COMMON_LEARN_STRATEGY_STRATEGIES_DEFAULT_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGIES_DEFAULT_STRATEGY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_store.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/replica/replica_operations.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

struct DefaultStrategyOptions {
  // Threads per operation; 0 means one per core.
  int thread_count = 0;
  // Batches prepared ahead of the step; 0 means none, without a thread.
  int prefetch_batch_count = 2;
};

// One process, one replica: the strategy that is used if none is given.
// Computes on the first GPU that is visible to DeviceSet::OfProcess() and keeps
// the variables there. Computes on the host if there is no GPU. Steps run one
// after another in the order of the data, so the same seeds yield bit-identical
// results.
//
// Equivalent to: tf.distribute.get_strategy() outside of any scope.
class DefaultStrategy final : public Strategy, public ReplicaOperations {
 public:
  //   kInvalidArgument  an option is out of range
  //   others            from the GPU, if there is one
  static absl::StatusOr<std::unique_ptr<DefaultStrategy>> Create(
      const DefaultStrategyOptions& options = {});

  absl::string_view name() const override { return "default"; }
  int num_replicas_in_sync() const override { return 1; }
  bool draws_from_copies() const override { return false; }
  VariableStore& variables() override { return *variables_; }

  // Loops must not outlive the strategy.
  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph& step,
                                                       const Dataset& dataset,
                                                       LoopKind kind) override;

  const WorkerAgreement& agreement() const override { return sole_worker_; }
  TrainingRecovery* recovery() override { return nullptr; }
  StrategyReport Report() const override { return {}; }

 private:
  DefaultStrategy(std::unique_ptr<ReplicaGroup> group, ReplicaDevices devices,
                  std::unique_ptr<ReplicaVariables> variables,
                  const DefaultStrategyOptions& options);

  const DefaultStrategyOptions options_;
  const std::unique_ptr<ReplicaGroup> group_;  // Of one replica.
  const ReplicaDevices devices_;               // Of one replica.
  const std::unique_ptr<ReplicaVariables> variables_;
  const SoleWorker sole_worker_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGIES_DEFAULT_STRATEGY_H_
