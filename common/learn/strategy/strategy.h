#ifndef COMMON_LEARN_STRATEGY_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/lifetime.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/group_membership.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/strategy/training_recovery.h"
#include "common/learn/strategy/variable_owners.h"
#include "common/learn/strategy/worker_agreement.h"
#include "common/net/status/status_report.h"

namespace muster {

// A strategy's statistics of a run, for summary.json.
struct StrategyReport {
  int64_t retry_count = 0;     // Steps repeated because a task was lost.
  int64_t recovery_count = 0;  // Lost tasks that returned.
  // The size of the variables and optimizer slots of a replica of this process.
  // Known of synchronous strategies.
  std::optional<int64_t> replica_state_bytes = std::nullopt;
  // One line per task:
  // "worker 0 localhost:20001 incarnation 6f1c02a9d2e4b713".
  std::vector<std::string> tasks;
  // Of a strategy with several processes.
  std::optional<TimelineStatus> timeline = std::nullopt;
};

// Defines where replicas and variables are placed and how replicas agree. Model
// code does not depend on it.
//
// Equivalent to: tf.distribute.Strategy.
//
// Thread-safe.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // "default", "parameter_server", ...: the name in logs and summary.json.
  virtual absl::string_view name() const = 0;

  // The number of replicas whose gradients are summed before they are applied.
  virtual int num_replicas_in_sync() const = 0;

  // True if steps draw from copies of a dataset in several processes and not
  // from one iterator. In this case there is no single pass over the data, and
  // an epoch is a number of steps.
  virtual bool draws_from_copies() const = 0;

  virtual VariableStore& variables() = 0;

  // The parameters of `step` are the components of an element of `dataset`, in
  // order; `dataset` is batched.
  virtual absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(
      const Graph& step, const Dataset& dataset, LoopKind kind) = 0;

  // The processes that run the program in sync with this one; a SoleWorker if
  // there are none. Owned by the strategy.
  virtual const WorkerAgreement& agreement() const = 0;

  // Null: no variable is in another process, so none is lost and restored.
  // Owned by the strategy.
  virtual TrainingRecovery* recovery() = 0;

  // Null: no process can join the ones that train. Owned by the strategy.
  virtual GroupMembership* membership() { return nullptr; }

  // Statistics of the run so far.
  virtual StrategyReport Report() const = 0;

  // Which models the variables belong to.
  VariableOwners& owners() { return owners_; }

  // For objects that use the strategy, and may outlive it.
  Borrowed<Strategy> Borrow() {
    return {this, lifetime_, absl::StrCat("strategy \"", name(), "\"")};
  }

  // As WorkerAgreement.
  bool is_chief() const { return agreement().is_chief(); }

 private:
  Lifetime lifetime_;
  VariableOwners owners_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGY_H_
