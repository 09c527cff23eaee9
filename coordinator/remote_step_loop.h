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

namespace muster {

// Training on workers: every step is a closure, and every worker draws from its
// own copy of the data.
//
// A pass through data that ends is as many steps as it has batches, whichever
// worker runs them. Results are handed over in the order of scheduling.
//
// When training is rolled back, Run() fails. The next one continues from there:
// first come the results of steps whose effects stay and that had not been
// handed over at that moment, and steps that were scheduled are forgotten.
//
// Not thread-safe.
class RemoteStepLoop final : public StepLoop,
                             public StoppableLoop,
                             public GroupingLoop,
                             private SnapshotParticipant {
 public:
  struct Options {
    // Steps scheduled before their results have been taken.
    int steps_ahead_max = 1024;
    // Batches that a worker makes ready ahead of its step.
    int prefetch_batch_count = 2;
    ScheduledSteps::Options waits;
  };

  // The parameters of `step` are the components of an element of `dataset`.
  //   kFailedPrecondition  the dataset cannot be sent to workers
  //   kInvalidArgument     a mistake made while chaining, or it is unknown how
  //                        long the dataset is
  static absl::StatusOr<std::unique_ptr<RemoteStepLoop>> Create(
      std::shared_ptr<ClusterConnection> connection, const Graph& step,
      const Dataset& dataset, const Options& options, Clock* clock);

  ~RemoteStepLoop() override;

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;

  StoppableLoop* stoppable() override { return this; }
  GroupingLoop* grouping() override { return this; }

  // Steps that have begun are the last; those scheduled after them are not run.
  void StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
  }
  // A closure then runs that many steps: its cost is paid once for all of them,
  // and they finish, or are retried, together.
  std::optional<DurationHistogram> StepDurations() const override;

  void GroupSteps(int steps_per_start) override;

 private:
  RemoteStepLoop(std::shared_ptr<ClusterConnection> connection,
                 const Dataset& dataset, const Options& options, Clock* clock);

  // Gives the workers iterators that never end.
  absl::Status OpenIterators();
  // One closure of so many steps.
  absl::Status Schedule(int step_count);
  // The results of one closure, step by step.
  static absl::Status HandOver(const ScheduledSteps::Results& results,
                               OnStep on_step, Outcome* outcome);
  absl::Status FinishBegun(OnStep on_step, Outcome* outcome);
  // The results of steps that are not under way any more.
  absl::Status HandOverKept(int64_t step_count_max, OnStep on_step,
                            Outcome* outcome);

  // The batches that had been handed over at a snapshot, and those that had
  // not.
  struct SnapshotState {
    int64_t steps_into_pass = 0;  // Of those handed over.
    std::deque<std::vector<Tensor>> kept;
  };
  std::shared_ptr<const void> OnSnapshot() override;
  void OnRollback(const void* state) override;

  const std::shared_ptr<ClusterConnection> connection_;
  const Dataset dataset_;
  const Options options_;
  // Batches in one pass; kInfinite when the data never ends.
  const int64_t pass_step_count_;
  ClosureWork work_;
  int64_t steps_into_pass_ = 0;
  int steps_per_closure_ = 1;
  ScheduledSteps scheduled_;
  std::deque<std::vector<Tensor>> kept_;
  uint64_t loop_id_ = 0;
  std::function<bool()> is_to_stop_;  // Or null.
};

}  // namespace muster

#endif  // COORDINATOR_REMOTE_STEP_LOOP_H_
