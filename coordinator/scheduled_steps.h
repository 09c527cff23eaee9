#ifndef COORDINATOR_SCHEDULED_STEPS_H_
#define COORDINATOR_SCHEDULED_STEPS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/closure_queue.h"
#include "coordinator/remote_value.h"

namespace muster {

// The closures of a loop that have not been taken yet, and their results in the
// order of scheduling. Nobody else schedules closures meanwhile.
//
// Not thread-safe.
class ScheduledSteps {
 public:
  struct Options {
    // Without the oldest one finished for so long, taking it fails.
    absl::Duration stall_timeout = absl::Minutes(10);
    absl::Duration stall_report_interval = absl::Seconds(5);
  };

  struct Results {
    std::vector<Tensor> tensors;  // Of all its steps, following each other.
    int step_count = 0;
  };

  // Both are borrowed.
  ScheduledSteps(ClosureDispatcher* dispatcher, const Options& options,
                 Clock* clock)
      : dispatcher_(*dispatcher), options_(options), clock_(clock) {}

  bool empty() const { return scheduled_.empty(); }
  // Of all closures.
  int64_t step_count() const { return step_count_; }
  // The oldest: there is one.
  const ClosureWork& front_work() const { return scheduled_.front().work; }
  bool is_front_done() const { return scheduled_.front().value.done(); }

  // Queues a closure. After an error nothing is scheduled any more.
  //   kDeadlineExceeded  says what the queue waits for
  //   any                an earlier closure failed
  absl::Status Add(ClosureWork work);

  // Takes the oldest one off, when it has finished; logs who is waited for.
  // After an error nothing is scheduled any more.
  //   kDeadlineExceeded  says who did not finish it
  //   any                it failed, or another one did
  absl::StatusOr<Results> TakeFront();

  // Cancels what has not begun and waits for the rest, which TakeSettled()
  // gives then.
  absl::Status Settle();
  // As TakeFront(), of one that has finished or was cancelled; unset if it was.
  absl::StatusOr<std::optional<Results>> TakeSettled();

  // What has finished, oldest first; stays where it is.
  std::vector<Results> Finished() const;

  // Cancels everything and waits for what has begun.
  //   kDeadlineExceeded  says who does not end
  //   any                the failure of a closure
  absl::Status Abandon();
  // They were cancelled by somebody else.
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
