#ifndef COMMON_LEARN_STRATEGY_STRATEGIES_SYNCHRONOUS_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGIES_SYNCHRONOUS_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/replica/replica_operations.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/sharded_state.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/group_agreement.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

// The common implementation of synchronous strategies: replicas on devices of
// this process, and possibly of other processes, process parts of one global
// batch and make the same updates to their variables. OneDeviceStrategy,
// MirroredStrategy, CentralStorageStrategy and MultiWorkerMirroredStrategy are
// configurations of it.
//
// Training with any number of replicas is equivalent to training with one on
// the same global batches, within float rounding; with
// deterministic_micro_batches, it is bit-identical.
//
// Thread-safe, but loops that communicate must run one after another, in the
// same order on all workers. Loops must not outlive the strategy.
class SynchronousStrategy : public Strategy, public ReplicaOperations {
 public:
  struct Options {
    std::string name = "synchronous";  // "mirrored".
    CommunicationOptions communication = {};
    // Sends gradients on a separate thread while further gradients are
    // computed. For transports that wait for a network.
    bool overlaps_communication = false;
    // The replicas of this process share one copy of the variables, which is
    // updated once.
    bool shares_variables = false;
    // What the replicas divide among themselves. A single replica keeps all.
    ShardedState sharded_state = ShardedState::kNone;
    InputOptions input = {};
    // Threads per operation of one replica. At least 1.
    int intra_op_thread_count = 1;
    // The devices of the replicas of this process. See MakeVariables().
    ReplicaDevices devices = {};
    // The number of parts into which each global batch is divided, independent
    // of the number of replicas, so that the weights are bit-identical for up
    // to this many replicas. Each operation then uses one thread, and the parts
    // are the replicas of the graph's own collectives (LeafLockstep). 0 means
    // one part per replica; sums are then equal within rounding.
    int deterministic_micro_batches = 0;
    // As SynchronousStepLoop::Options.
    std::function<void(const char* activity, uint64_t step)> note_activity =
        nullptr;
    // As WorkerAgreement.
    std::optional<uint64_t> shared_seed = std::nullopt;
    // How custom loops reduce the values of one process between steps; null
    // means ReductionToOneDevice(). For gradients, see MakeLocalReplicas(): the
    // group's communicators use it.
    std::shared_ptr<const CrossDeviceOps> cross_device_ops = nullptr;
  };

  // Checks the options for this worker's replicas.
  //   kInvalidArgument  an option is out of range; there are more replicas than
  //                     micro-batches; both micro-batches and cross-device ops
  //                     are given; variables are shared and there are several
  //                     workers, or state is sharded
  //   kUnimplemented    state is sharded and a replica is on a GPU
  static absl::Status CheckOptions(const ReplicaGroup& group,
                                   const Options& options);

  // Creates the variable stores of this process's replicas, each in the memory
  // of its device. Returns none if the replicas share variables, which are on
  // the host.
  //   errors  of the device
  static absl::StatusOr<MirroredVariableStore::Copies> MakeVariables(
      const ReplicaGroup& group, const Options& options);

  // Requires that the options have passed CheckOptions(). `variables` come from
  // MakeVariables(); if empty, variables are on the host.
  SynchronousStrategy(std::unique_ptr<ReplicaGroup> group, Options options,
                      MirroredVariableStore::Copies variables = {});

  absl::string_view name() const override { return options_.name; }
  int num_replicas_in_sync() const override { return group_->size(); }
  bool draws_from_copies() const override { return false; }
  MirroredVariableStore& variables() override { return variables_; }

  absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(const Graph& step,
                                                       const Dataset& dataset,
                                                       LoopKind kind) override;

  const GroupAgreement& agreement() const override { return agreement_; }
  // No recovery: the loss of a process ends the group.
  TrainingRecovery* recovery() override { return nullptr; }
  StrategyReport Report() const override;

  ReplicaGroup& group() { return *group_; }
  const Options& options() const { return options_; }

 private:
  const Options options_;
  const std::unique_ptr<ReplicaGroup> group_;
  MirroredVariableStore variables_;
  const GroupAgreement agreement_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGIES_SYNCHRONOUS_STRATEGY_H_
