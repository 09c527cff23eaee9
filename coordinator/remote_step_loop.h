#ifndef COORDINATOR_REMOTE_STEP_LOOP_H_
#define COORDINATOR_REMOTE_STEP_LOOP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/system/clock.h"
#include "common/core/system/duration_histogram.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/step_loop.h"
#include "coordinator/closure_queue.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/scheduled_steps.h"
#include "coordinator/server_recovery.h"
#include "coordinator/synchronous_steps.h"
#include "coordinator/training_journal.h"

namespace muster {

struct ShardingPlan;

// Trains on workers: every closure runs one or more steps, and every worker
// draws from its own copy of the data.
//
// A pass through finite data has as many steps as the data has batches,
// regardless of which workers run them. Results are passed to the caller in the
// order of scheduling.
//
// If training is rolled back, Run() fails. The next Run() continues from the
// snapshot: it first passes on the results of steps whose effects were kept and
// whose results had not been passed on at the snapshot. Scheduled steps are
// cancelled.
//
// Records its place in the TrainingJournal before the first closure of each
// Run(), and from time to time within it. In a coordinator that continues the
// training of an earlier one, the first Run() continues from the recorded
// place.
//
// Not thread-safe.
class RemoteStepLoop final : public StepLoop,
                             public StoppableLoop,
                             public GroupingLoop,
                             private SnapshotParticipant {
 public:
  struct Options {
    // Maximum number of steps whose results have not been taken.
    int steps_ahead_max = 1024;
    // Batches that a worker prepares ahead of its step.
    int prefetch_batch_count = 2;
    ScheduledSteps::Options waits;
  };

  // The parameters of `step` are the components of an element of `dataset`.
  //   kFailedPrecondition  the dataset cannot be sent to workers
  //   kInvalidArgument     an error in the definition of the dataset, or its
  //                        length is unknown
  static absl::StatusOr<std::unique_ptr<RemoteStepLoop>> Create(
      std::shared_ptr<ClusterConnection> connection, const Graph& step,
      const Dataset& dataset, const Options& options, Clock* clock);

  ~RemoteStepLoop() override;

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;

  StoppableLoop* stoppable() override { return this; }
  GroupingLoop* grouping() override { return this; }

  // When `is_to_stop` returns true, steps that have started finish, and those
  // scheduled after them are not run.
  void StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
  }
  std::optional<DurationHistogram> StepDurations() const override;

  // Lets each closure run `steps_per_start` steps. The overhead of a closure is
  // then paid once for all of them, and they finish, or are retried, together.
  // In synchronous training a closure runs one step.
  void GroupSteps(int steps_per_start) override;

 private:
  RemoteStepLoop(std::shared_ptr<ClusterConnection> connection,
                 const Graph& step, int64_t pass_step_count,
                 const Options& options, Clock* clock);
  // Records the place before the first closure of a run.
  absl::Status BeginRun();

  // Creates iterators on the workers that never end.
  absl::Status OpenIterators(ShardingPlan plan);
  // Schedules one closure of `step_count` steps.
  absl::Status Schedule(int step_count);
  // Returns the place after the results that the caller has taken.
  TrainingJournal::Place PlaceOfResults() const;
  // Passes the results of one closure to `on_step`, step by step.
  static absl::Status HandOver(const ScheduledSteps::Results& results,
                               OnStep on_step, Outcome* outcome);
  absl::Status FinishBegun(OnStep on_step, Outcome* outcome);
  // Passes on the results in kept_, whose steps had finished before a rollback.
  absl::Status PassKeptResults(int64_t step_count_max, OnStep on_step,
                               Outcome* outcome);

  // The position in the data at a snapshot, and the results of finished steps
  // that had not been passed on.
  struct SnapshotState {
    int64_t steps_into_pass = 0;  // Steps whose results had been passed on.
    std::deque<std::vector<Tensor>> kept;
  };
  std::shared_ptr<const void> OnSnapshot() override;
  void OnRollback(const void* state) override;

  const std::shared_ptr<ClusterConnection> connection_;
  const Options options_;
  // Batches in one pass; kInfinite if the data never ends.
  const int64_t pass_step_count_;
  ClosureWork work_;
  int64_t steps_into_pass_ = 0;
  int steps_per_closure_ = 1;
  SynchronousSteps synchronous_;
  ScheduledSteps scheduled_;
  std::deque<std::vector<Tensor>> kept_;
  uint64_t loop_id_ = 0;
  uint64_t graph_fingerprint_ = 0;
  std::function<bool()> is_to_stop_;  // May be null.
};

}  // namespace muster

#endif  // COORDINATOR_REMOTE_STEP_LOOP_H_
