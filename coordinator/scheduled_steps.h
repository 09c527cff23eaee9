#ifndef COORDINATOR_SCHEDULED_STEPS_H_
#define COORDINATOR_SCHEDULED_STEPS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/closure_queue.h"
#include "coordinator/remote_value.h"

namespace muster {

// The scheduled closures of a loop and their results, in the order of
// scheduling. While it has closures, no other code may schedule any.
//
// Not thread-safe.
class ScheduledSteps {
 public:
  struct Options {
    // TakeFront() fails if the oldest closure does not finish within this time.
    absl::Duration stall_timeout = absl::Minutes(10);
    absl::Duration stall_report_interval = absl::Seconds(5);
  };

  struct Results {
    std::vector<Tensor> tensors;  // The results of all its steps, concatenated.
    int step_count = 0;
  };

  // Both are borrowed and must outlive this object.
  ScheduledSteps(ClosureDispatcher* dispatcher, const Options& options,
                 Clock* clock)
      : dispatcher_(*dispatcher), options_(options), clock_(clock) {}

  bool empty() const { return scheduled_.empty(); }
  // The number of steps of all closures.
  int64_t step_count() const { return step_count_; }
  // Returns the oldest closure. Requires !empty().
  const ClosureWork& front_work() const { return scheduled_.front().work; }
  uint64_t front_closure_id() const {
    return scheduled_.front().value.closure_id();
  }
  bool is_front_done() const { return scheduled_.front().value.done(); }

  // Queues a closure. After an error no closures are left.
  //   kDeadlineExceeded  names what the queue waits for
  //   any                an earlier closure failed
  absl::Status Add(ClosureWork work);

  // Blocks until the oldest closure has finished, and removes it. Logs which
  // tasks it waits for. After an error no closures are left.
  //   kDeadlineExceeded  names the task that did not finish it
  //   any                this or another closure failed
  absl::StatusOr<Results> TakeFront();

  // Cancels closures that have not been started and waits for the others.
  // TakeSettled() then returns their results.
  absl::Status Settle();
  // As TakeFront(), after Settle(). Returns nullopt if the closure was
  // cancelled.
  absl::StatusOr<std::optional<Results>> TakeSettled();

  // Returns the results of finished closures, oldest first, without removing
  // them.
  std::vector<Results> Finished() const;

  // Cancels all closures and waits for those that have been started.
  //   kDeadlineExceeded  names the task that does not finish
  //   any                the failure of a closure
  absl::Status Abandon();
  // Drops all closures. The caller has cancelled them elsewhere.
  void Forget();

 private:
  struct Scheduled {
    RemoteValue value;
    ClosureWork work;
  };

  absl::Time StallDeadline() const {
    return clock_->Now() + options_.stall_timeout;
  }
  absl::Status AwaitFront() const;
  absl::StatusOr<Results> Fetch(const Scheduled& scheduled) const;
  Scheduled PopFront();

  ClosureDispatcher& dispatcher_;
  const Options options_;
  Clock* const clock_;
  std::deque<Scheduled> scheduled_;
  int64_t step_count_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_SCHEDULED_STEPS_H_
