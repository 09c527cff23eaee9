#ifndef COORDINATOR_REMOTE_STEP_LOOP_H_
#define COORDINATOR_REMOTE_STEP_LOOP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/dataset/dataset.h"
#include "common/graph/graph.h"
#include "common/strategy/strategy.h"
#include "common/tensor/tensor.h"
#include "coordinator/closure_queue.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/remote_value.h"
#include "coordinator/server_recovery.h"

namespace muster {

// Training on workers: every step is a closure, and every worker draws from its
// own copy of the data.
//
// A pass through data that ends is as many steps as it has batches, whoever
// runs them. Results are handed over in the order of scheduling.
//
// When training is rolled back, Run() fails. The next one goes on from there:
// first come the results of steps whose effects stay and that had not been
// handed over at that moment, and steps that were scheduled are forgotten.
//
// Not thread-safe.
class RemoteStepLoop final : public StepLoop, private CutParticipant {
 public:
  struct Options {
    // Steps scheduled before their results have been taken.
    int steps_ahead_max = 1024;
    // Batches that a worker makes ready ahead of its step.
    int prefetch_batch_count = 2;
    // Without any step finished for so long, training fails.
    absl::Duration stall_timeout = absl::Minutes(10);
    absl::Duration stall_report_interval = absl::Seconds(5);
  };

  // The parameters of `step` are the components of an element of `dataset`.
  //   kFailedPrecondition  the dataset cannot be sent to workers
  //   kInvalidArgument     a mistake made while chaining, or nobody knows how
  //                        long the dataset is
  static absl::StatusOr<std::unique_ptr<RemoteStepLoop>> Create(
      std::shared_ptr<ClusterConnection> connection, const Graph& step,
      const Dataset& dataset, const Options& options, Clock* clock);

  ~RemoteStepLoop() override;

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;

  // Steps that have begun are the last; those scheduled behind them are not
  // run.
  bool StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
    return true;
  }
  // A closure then runs as many steps: it costs once for all of them, and they
  // finish, or are tried again, together.
  void GroupSteps(int steps_per_start) override;

 private:
  RemoteStepLoop(std::shared_ptr<ClusterConnection> connection,
                 const Dataset& dataset, const Options& options, Clock* clock);

  // Gives the workers iterators that never end.
  absl::Status OpenIterators();
  // One closure of so many steps.
  absl::Status Schedule(int step_count);
  // Hands over the results of the oldest closure, step by step.
  absl::Status TakeFront(OnStep on_step, Outcome* outcome);
  // Those of one closure.
  static absl::Status HandOver(absl::Span<const Tensor> results, int step_count,
                               OnStep on_step, Outcome* outcome);
  void PopFront();
  absl::Status AwaitFront();
  // Cancels what is under way and waits for it.
  absl::Status Abandon();
  absl::Status FinishBegun(OnStep on_step, Outcome* outcome);
  // The results of steps that are not under way any more.
  absl::Status HandOverKept(int64_t step_count_max, OnStep on_step,
                            Outcome* outcome);

  struct Scheduled {
    RemoteValue value;
    int step_count;
  };

  // What had been handed over at a cut, and what had not.
  struct CutState {
    int64_t steps_into_pass = 0;  // Of those handed over.
    std::deque<std::vector<Tensor>> kept;
  };
  std::shared_ptr<const void> OnCut() override;
  void OnRollback(const void* state) override;

  const std::shared_ptr<ClusterConnection> connection_;
  const Dataset dataset_;
  const Options options_;
  Clock* const clock_;
  // Batches in one pass; kInfinite when the data never ends.
  const int64_t pass_step_count_;
  ClosureWork work_;
  int64_t steps_into_pass_ = 0;
  int steps_per_closure_ = 1;
  std::deque<Scheduled> scheduled_;
  int64_t steps_ahead_ = 0;  // Of all that are scheduled.
  std::deque<std::vector<Tensor>> kept_;
  uint64_t loop_id_ = 0;
  std::function<bool()> is_to_stop_;  // Or null.
};

}  // namespace muster

#endif  // COORDINATOR_REMOTE_STEP_LOOP_H_
