#ifndef COORDINATOR_DISPATCHED_STEP_LOOP_H_
#define COORDINATOR_DISPATCHED_STEP_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/system/clock.h"
#include "common/core/system/duration_histogram.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/sharding_plan.h"
#include "common/learn/strategy/step_loop.h"
#include "coordinator/closure_queue.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/scheduled_steps.h"
#include "coordinator/server_recovery.h"
#include "coordinator/synchronous_steps.h"

namespace muster {

// Runs steps on workers. This process draws each batch and sends it to a worker
// that is free. Each batch is used exactly once, even if workers are lost.
// Results are passed to the caller in the order of the data.
//
// After an error, the next Run() begins at the start of the data. If training
// is rolled back, Run() fails.
//
// Not thread-safe.
class DispatchedStepLoop final : public StepLoop,
                                 public StoppableLoop,
                                 private SnapshotParticipant {
 public:
  struct Options {
    // Number of batches that are drawn ahead of sending.
    int prefetch_batch_count = 2;
    // Limits on batches that were sent and whose results have not been taken:
    // at least two for each step that workers run concurrently, and more if
    // batches are small.
    int batches_ahead_min = 2;
    int batches_ahead_max = 1024;
    size_t bytes_ahead_max = size_t{32} << 20;
    ScheduledSteps::Options waits;
  };

  // The parameters of `step` are the components of an element of `dataset`.
  // With kTrainOnBatch, steps change variables, and checkpoints for recovery
  // are written; with the other kinds, steps only read them.
  //   kInvalidArgument  an error in the definition of the dataset
  static absl::StatusOr<std::unique_ptr<DispatchedStepLoop>> Create(
      std::shared_ptr<ClusterConnection> connection, const Graph& step,
      const Dataset& dataset, LoopKind kind, const Options& options,
      Clock* clock);

  ~DispatchedStepLoop() override;

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;

  std::optional<DurationHistogram> StepDurations() const override;

  // Null for predictions, whose results must be in the order of the data.
  StoppableLoop* stoppable() override {
    return kind_ == LoopKind::kPredict ? nullptr : this;
  }
  // When `is_to_stop` returns true, no further steps start. Batches of steps
  // that were scheduled but not started are used by the next Run(), whose
  // results may then be out of order.
  void StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
  }

 private:
  DispatchedStepLoop(std::shared_ptr<ClusterConnection> connection,
                     const Graph& step, ShardingPlan plan, LoopKind kind,
                     const Options& options, Clock* clock);

  absl::StatusOr<Outcome> RunSteps(int64_t step_count_max, OnStep on_step);
  // True if another batch should be drawn before the next result is taken.
  bool MayAdd() const;
  // Draws a batch and schedules its step. Returns false at the end of the data.
  absl::StatusOr<bool> AddBatch();
  absl::Status Schedule(std::shared_ptr<const ClosureArguments> batch);
  // Waits for the steps that have started, and puts the batches of the other
  // steps into unstarted_batches_.
  absl::Status FinishBegun(OnStep on_step, Outcome* outcome);
  void Forget();

  std::shared_ptr<const void> OnSnapshot() override { return nullptr; }
  void OnRollback(const void*) override { Forget(); }

  const std::shared_ptr<ClusterConnection> connection_;
  const ShardingPlan plan_;
  const LoopKind kind_;
  const Options options_;
  uint32_t function_id_ = 0;
  // Null if a pass through the data begins with the next batch.
  std::unique_ptr<DatasetIterator> iterator_;
  int64_t pass_ = 0;
  bool pass_has_ended_ = false;  // True until Run() reports it.
  SynchronousSteps synchronous_;
  ScheduledSteps scheduled_;
  size_t bytes_ahead_ = 0;  // Size of the scheduled batches.
  // Batches that were drawn and whose steps were cancelled. They are used
  // before new batches.
  std::deque<std::shared_ptr<const ClosureArguments>> unstarted_batches_;
  uint64_t loop_id_ = 0;
  std::function<bool()> is_to_stop_;  // May be null.
};

}  // namespace muster

#endif  // COORDINATOR_DISPATCHED_STEP_LOOP_H_
