#ifndef COMMON_LEARN_STRATEGY_TPU_TPU_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_TPU_TPU_STRATEGY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/strategy/tpu/tpu_variable_store.h"

namespace muster {

struct TpuStrategyOptions {
  // Batches prepared ahead of the step; 0 means none, without a thread.
  int prefetch_batch_count = 2;
};

// One replica on each device of a PJRT plugin: TPUs, or devices that the plugin
// for CPUs simulates. A step is one program: forward and backward pass,
// reduction of the gradients over the devices, and updates. Variables stay on
// the devices between steps.
//
//   ASSIGN_OR_RETURN(auto system, InitializeTpuSystem({.plugin = "tpu"}));
//   ASSIGN_OR_RETURN(auto strategy, TpuStrategy::Create(system));
//
// The compiler needs known shapes: there is a program for each shape of
// batches, so batches of one size are fast. See TpuStep for batches that the
// devices cannot divide equally.
//
// A step with an op, an optimizer or a variable that has no translation to
// StableHLO is refused before it runs: kUnimplemented names the op and the
// node. docs/design/tpu.md lists them.
//
// Equivalent to: tf.distribute.TPUStrategy with fit, evaluate and predict.
// Custom loops are not supported.
class TpuStrategy final : public Strategy {
 public:
  //   kInvalidArgument  an option is out of range
  static absl::StatusOr<std::unique_ptr<TpuStrategy>> Create(
      std::shared_ptr<TpuSystem> system,
      const TpuStrategyOptions& options = {});

  absl::string_view name() const override { return "tpu"; }
  int num_replicas_in_sync() const override { return system_->device_count(); }
  bool draws_from_copies() const override { return false; }
  VariableStore& variables() override { return variables_; }

  // Loops must not outlive the strategy.
  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph& step,
                                                       const Dataset& dataset,
                                                       LoopKind kind) override;

  const WorkerAgreement& agreement() const override { return sole_worker_; }
  TrainingRecovery* recovery() override { return nullptr; }
  StrategyReport Report() const override;

  const TpuSystem& system() const { return *system_; }

 private:
  TpuStrategy(std::shared_ptr<TpuSystem> system,
              const TpuStrategyOptions& options);

  const std::shared_ptr<TpuSystem> system_;
  const TpuStrategyOptions options_;
  TpuVariableStore variables_;
  const SoleWorker sole_worker_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_TPU_TPU_STRATEGY_H_
