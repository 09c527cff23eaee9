#ifndef COMMON_LEARN_STRATEGY_STEP_LOOP_H_
#define COMMON_LEARN_STRATEGY_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/system/duration_histogram.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Identifies the next step of a loop, so that another loop over the same data
// can continue there.
struct StepPosition {
  // Number of complete passes over the data.
  int64_t pass = 0;
  // Elements, that is global batches, used by steps of this pass.
  int64_t element = 0;
  // Total number of steps, which seeds the random numbers of each step.
  int64_t step = 0;
};

// A loop whose steps use one sequence of elements in order.
class SeekableLoop {
 public:
  // The position after the last step, also during its call of `on_step`.
  virtual StepPosition position() const = 0;

  // Continues at `position` of a loop over the same data, which is read again
  // up to there. Call it between two calls of Run().
  //   kDataLoss  the data has fewer elements now
  //   others     errors of the data
  virtual absl::Status Seek(const StepPosition& position) = 0;

 protected:
  ~SeekableLoop() = default;
};

// A loop that can stop in the middle of Run().
class StoppableLoop {
 public:
  // Sets a predicate that is called before each step. Once it returns true, the
  // step is completed and is the last one, on all synchronous workers. Call it
  // between two calls of Run(), on all workers or on none.
  virtual void StopWhen(std::function<bool()> is_to_stop) = 0;

 protected:
  ~StoppableLoop() = default;
};

// A loop for which starting a step is expensive.
class GroupingLoop {
 public:
  // Starts steps in groups of up to this size, at least 1. Does not change the
  // steps; each has its results. Call it before Run().
  virtual void GroupSteps(int steps_per_start) = 0;

 protected:
  ~GroupingLoop() = default;
};

// A loop that can begin a step before the one before is done, so that a device
// has work while the host looks at results.
class OverlappingLoop {
 public:
  // Sets a predicate that is called before a step, with the number of steps
  // that have begun and whose on_step has not been called, at least 1. The step
  // may begin if it returns true; then variables may be ahead of the results
  // that on_step gets, and an error of on_step comes too late for it. Without a
  // predicate, steps that change variables do not overlap. Call it between two
  // calls of Run().
  virtual void OverlapWhen(
      std::function<bool(int64_t unfinished_count)> may_overlap) = 0;

 protected:
  ~OverlappingLoop() = default;
};

// Runs one traced step repeatedly on the elements of a dataset.
//
// Not thread-safe.
class StepLoop {
 public:
  // Called on the thread that called Run(), once for each finished step, with
  // the step's results. An error stops the loop.
  using OnStep =
      absl::FunctionRef<absl::Status(absl::Span<const Tensor> results)>;

  struct Outcome {
    int64_t step_count = 0;
    // Stopped before `step_count_max` because the dataset ended. The next Run()
    // starts at its beginning.
    bool end_of_data = false;
    // Stopped because another synchronous worker requested it.
    bool was_stopped = false;
    // Stopped as requested by StopWhen(), here or on another worker.
    bool was_told_to_stop = false;
  };

  virtual ~StepLoop() = default;

  // Runs up to `step_count_max` more steps and waits for them. Steps may finish
  // in a different order from that in which they were started.
  virtual absl::StatusOr<Outcome> Run(int64_t step_count_max,
                                      OnStep on_step) = 0;

  // How long steps took in the processes that ran them, if steps are run in
  // other processes.
  virtual std::optional<DurationHistogram> StepDurations() const {
    return std::nullopt;
  }

  // The part of the time within Run() for which the device had no work, between
  // the end of a step and the beginning of the next. Not known by loops that do
  // not let a device work ahead.
  virtual std::optional<double> DeviceIdleShare() const { return std::nullopt; }

  // The optional capabilities of this loop; null: it lacks them. Owned by the
  // loop.
  virtual SeekableLoop* seekable() { return nullptr; }
  virtual StoppableLoop* stoppable() { return nullptr; }
  virtual GroupingLoop* grouping() { return nullptr; }
  virtual OverlappingLoop* overlapping() { return nullptr; }
};

enum class LoopKind {
  kTrain,  // Steps update variables; the strategy defines order and visitation.
  // Steps update variables. This process draws the elements, and each is used
  // exactly once.
  kTrainOnBatch,
  kEvaluate,  // Every element is used exactly once.
  // Every element is used exactly once, and steps finish in the order of the
  // data. Results have one row for each row of the batch.
  kPredict,
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STEP_LOOP_H_
