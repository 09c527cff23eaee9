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
#include "common/learn/strategy/step_loop.h"
#include "coordinator/closure_queue.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/scheduled_steps.h"
#include "coordinator/server_recovery.h"

namespace muster {

// Steps on workers whose batches this process draws and sends along: each batch
// is seen exactly once, whichever worker is lost, by any worker that is free.
// Results are handed over in the order of the data.
//
// After an error the next Run() begins at the start of the data. When training
// is rolled back, Run() fails.
//
// Not thread-safe.
class DispatchedStepLoop final : public StepLoop,
                                 public StoppableLoop,
                                 private SnapshotParticipant {
 public:
  struct Options {
    // Batches that are drawn before they are sent.
    int prefetch_batch_count = 2;
    // Batches that were sent and whose results have not been taken: two for
    // each step that workers run at once, and more of small ones.
    int batches_ahead_min = 2;
    int batches_ahead_max = 1024;
    size_t bytes_ahead_max = size_t{32} << 20;
    ScheduledSteps::Options waits;
  };

  // The parameters of `step` are the components of an element of `dataset`.
  // kTrainOnBatch: steps change variables, which is what checkpoints for
  // recovery are written for; otherwise they read them.
  //   kInvalidArgument  a mistake made while chaining
  static absl::StatusOr<std::unique_ptr<DispatchedStepLoop>> Create(
      std::shared_ptr<ClusterConnection> connection, const Graph& step,
      const Dataset& dataset, LoopKind kind, const Options& options,
      Clock* clock);

  ~DispatchedStepLoop() override;

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;

  std::optional<DurationHistogram> StepDurations() const override;

  // Not predictions, which are in the order of the data.
  StoppableLoop* stoppable() override {
    return kind_ == LoopKind::kPredict ? nullptr : this;
  }
  // Steps that have begun are the last. The batches of those scheduled after
  // them are used by the next Run(), which may hand their results over after
  // those of later batches.
  void StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
  }

 private:
  DispatchedStepLoop(std::shared_ptr<ClusterConnection> connection,
                     const Dataset& dataset, LoopKind kind,
                     const Options& options, Clock* clock);

  absl::StatusOr<Outcome> RunSteps(int64_t step_count_max, OnStep on_step);
  // True if another batch is to be drawn before a result is taken.
  bool MayAdd() const;
  // Draws a batch and schedules its step. False: the data has ended.
  absl::StatusOr<bool> AddBatch();
  absl::Status Schedule(std::shared_ptr<const ClosureArguments> batch);
  // Waits for the steps that have begun, and puts the batches of the others
  // back.
  absl::Status FinishBegun(OnStep on_step, Outcome* outcome);
  void Forget();

  std::shared_ptr<const void> OnSnapshot() override { return nullptr; }
  void OnRollback(const void*) override { Forget(); }

  const std::shared_ptr<ClusterConnection> connection_;
  const Dataset dataset_;
  const LoopKind kind_;
  const Options options_;
  uint32_t function_id_ = 0;
  // Null: a pass through the data begins with the next batch.
  std::unique_ptr<DatasetIterator> iterator_;
  int64_t pass_ = 0;
  bool pass_has_ended_ = false;  // And Run() has not said so.
  ScheduledSteps scheduled_;
  size_t bytes_ahead_ = 0;  // Of the batches that are scheduled.
  // Drawn, and not scheduled any more; they come before others.
  std::deque<std::shared_ptr<const ClosureArguments>> put_back_;
  uint64_t loop_id_ = 0;
  std::function<bool()> is_to_stop_;  // Or null.
};

}  // namespace muster

#endif  // COORDINATOR_DISPATCHED_STEP_LOOP_H_
