#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_SYNCHRONOUS_STEP_LOOP_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_SYNCHRONOUS_STEP_LOOP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/runtime/executable.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/learn/strategy/synchronous/replica_step.h"
#include "common/learn/strategy/synchronous/result_rows.h"

namespace muster {

// Runs steps on all replicas: each replica processes its own rows of the global
// batch, in lockstep with the others.
//
// kTrain and kEvaluate: the results of a step are summed over all replicas, on
// all workers. kPredict: they are concatenated, in the order of the replicas.
// Replicas without data contribute nothing. The data ends when no replica of
// any worker has data.
//
// On GPUs that decide whether steps are applied
// (ReplicaStep::overlaps_steps()), two steps may overlap if all workers allow
// it.
//
// If the group survives losses, a step that a loss interrupts is repeated by
// the workers that are left, which divide the lost worker's rows among
// themselves. All workers must then read the whole data
// (AutoShardPolicy::kData). Steps do not overlap.
//
// An error on one replica, or of a callback on one of several workers, ends the
// group with that error. A callback that cancels ends the loop on all workers
// after the current step, without an error on the others.
//
// Not thread-safe.
class SynchronousStepLoop final : public StepLoop,
                                  public OverlappingLoop,
                                  public SeekableLoop,
                                  public StoppableLoop {
 public:
  struct Options {
    // Threads per operation of one replica.
    int intra_op_thread_count = 1;
    ReplicaDevices devices = {};
    InputOptions input = {};
    CommunicationOptions communication = {};
    // As PackExchange::Options.
    bool overlaps_communication = false;
    // The number of parts into which the global batch is divided if bits must
    // not depend on the number of replicas. 0 means that they may depend on it.
    // Does not apply to kPredict.
    int deterministic_micro_batches = 0;
    // Called with this worker's current activity and step, for hang reports on
    // the workers that wait for it. May be null. The text lives as long as the
    // process.
    std::function<void(const char* activity, uint64_t step)> note_activity =
        nullptr;
  };

  // All pointers are borrowed.
  //   kInvalidArgument  the dataset cannot be distributed, or the step's
  //                     results cannot be summed or concatenated; or the group
  //                     survives losses, and workers train on different data
  //   as Executable::Compile() and ReplicaStep::variables()
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(
      const Graph& step, const Dataset& dataset, LoopKind kind,
      ReplicaGroup* group, MirroredVariableStore* variables,
      const Options& options);

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;
  SeekableLoop* seekable() override { return this; }
  StoppableLoop* stoppable() override { return this; }
  OverlappingLoop* overlapping() override {
    return overlaps_steps_ ? this : nullptr;
  }

  StepPosition position() const override { return position_; }
  absl::Status Seek(const StepPosition& position) override;
  void StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
  }
  // Several workers exchange the results of their predicates with the steps, so
  // `may_overlap` is called for the step after the next one. A loop with
  // StopWhen() does not overlap steps.
  void OverlapWhen(
      std::function<bool(int64_t unfinished_count)> may_overlap) override {
    may_overlap_ = std::move(may_overlap);
  }

 private:
  struct Runner {
    std::unique_ptr<Executable> executable;
    // Passed to the executable again, which reuses their memory.
    std::vector<Tensor> results;
  };
  struct Replica {
    std::unique_ptr<ReplicaStep> step;
    // The stream of its runners; null on the host.
    std::unique_ptr<DeviceStream> stream;
    // ReplicaStep::executable_count() of them.
    std::vector<Runner> runners;
    std::unique_ptr<ResultRows> rows;  // For kPredict only.
    // Index of its first leaf's batch among the batches of this process.
    int first_batch = 0;
    // For each unfinished step: true if the runner has started it.
    std::deque<bool> has_started;
  };
  // The common result of the replicas.
  struct StepEnd {
    bool had_data = false;
    bool stop_requested = false;
    bool is_last_step = false;
  };

  // A step of a group that survives losses.
  class Step;

  SynchronousStepLoop(LoopKind kind, ReplicaGroup* group,
                      MirroredVariableStore* variables, const Options& options,
                      ShardingPlan plan);

  static absl::StatusOr<ShardingPlan> PlanData(const Dataset& dataset,
                                               LoopKind kind,
                                               const ReplicaGroup& group,
                                               const Options& options);
  // Compiles the step for the replicas of the group.
  absl::Status Connect(const Graph& step);
  // Releases all that Connect() has made, before the group is formed again.
  void Disconnect();
  // Connects to the group again after Disconnect(), at `position_`.
  absl::Status Reconnect();
  // True if every worker draws the same parts of each batch, whatever workers
  // there are.
  bool has_fixed_parts() const {
    return options_.deterministic_micro_batches > 0;
  }
  // Divides the data among the workers of the group.
  void Distribute(ShardingPlan plan);
  absl::Status AddReplica(const Graph& step, int replica,
                          double expected_weight);
  absl::Status CompileRunners(const Graph& step, int replica, Replica* added);
  // Sets batches_; returns false if this is the only worker and has no data
  // left.
  absl::StatusOr<bool> DrawBatches();
  // Removes the rows from batches_, for a worker that no longer draws batches.
  void EmptyBatches();
  void Note(const char* activity) const;
  absl::StatusOr<Outcome> RunSteps(int64_t step_count_max, OnStep on_step);
  bool MayBegin() const;
  bool LetsStepsOverlap() const;
  absl::Status BeginStep(ReplicaStep::StepRequest request);
  absl::Status BeginReplica(int replica, ReplicaStep::StepRequest request);
  absl::Status RunLeaf(Replica* replica, int leaf);
  absl::StatusOr<StepEnd> FinishStep();
  // Runs a step from its beginning to its end. Before that, connects to a group
  // that was formed again.
  absl::StatusOr<StepEnd> RunWholeStep(ReplicaStep::StepRequest request);
  absl::Status RedrawBatches(ReplicaStep::StepRequest request);
  // Returns the common result of the last step that has finished.
  StepEnd EndOfStep();
  absl::Status SeekTo(const StepPosition& position);
  absl::Status FinishReplica(int replica);
  // Waits for unfinished steps and ignores their outcome.
  void DiscardSteps();
  absl::Span<const Tensor> Results() const;
  // Handles an error of a callback. Returns true if the loop must run another
  // step to inform the other workers.
  bool MustInformOtherWorkers(const absl::Status& status, bool is_last_step);
  void Rewind();

  const LoopKind kind_;
  ReplicaGroup* const group_;
  MirroredVariableStore* const variables_;
  const Options options_;
  std::optional<DistributedDataset> dataset_;  // Always has a value.
  // Kept alive as long as replicas_ use them, even if the group is recreated.
  ReplicaGroup::Communicators communicators_;
  std::vector<Replica> replicas_;
  // For Reconnect(), if the group survives losses.
  Graph step_;
  Dataset data_;
  bool is_connected_ = false;
  // The request of the step that has begun, and the result of the last one, if
  // the group survives losses.
  ReplicaStep::StepRequest request_ = ReplicaStep::StepRequest::kContinue;
  StepEnd end_;
  // The results of a step that only other workers have run.
  std::optional<std::vector<Tensor>> adopted_results_;

  std::unique_ptr<DistributedIterator> iterator_;  // Null between epochs.
  StepPosition position_;
  std::function<bool()> is_to_stop_;          // May be empty.
  std::function<bool(int64_t)> may_overlap_;  // May be empty.
  bool overlaps_steps_ = false;               // True if all replicas can.
  // True if all workers did in the last step.
  bool all_let_steps_overlap_ = false;
  // Steps that have begun and are not finished.
  int unfinished_count_ = 0;
  std::vector<ReplicaBatch> batches_;
  // Calls Disconnect(). Null unless the group survives losses. Destroyed first.
  std::unique_ptr<ReplicaGroup::User> user_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_SYNCHRONOUS_STEP_LOOP_H_
