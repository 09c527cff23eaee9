#ifndef COMMON_LEARN_STRATEGY_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"

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

  // Requests that steps are started in groups of this size, if starting one is
  // expensive. Does not change the steps; each has its results. Call it before
  // Run().
  virtual void GroupSteps(int steps_per_start) { (void)steps_per_start; }

  // Runs up to `step_count_max` more steps and waits for them. Steps may finish
  // in a different order from that in which they were started.
  virtual absl::StatusOr<Outcome> Run(int64_t step_count_max,
                                      OnStep on_step) = 0;

  // Sets a predicate that is called before each step. Once it returns true, the
  // step is completed and is the last one, on all synchronous workers. Call it
  // between two calls of Run(), on all workers or on none. Returns whether this
  // kind of loop supports it.
  virtual bool StopWhen(std::function<bool()> is_to_stop) {
    (void)is_to_stop;
    return false;
  }

  // The position after the last step, also during its call of `on_step`.
  virtual StepPosition position() const { return {}; }

  // Continues at `position` of a loop over the same data, which is read again
  // up to there. Call it between two calls of Run(). No effect if steps draw
  // from copies of the data.
  //   kDataLoss  the data has fewer elements now
  //   others     errors of the data
  virtual absl::Status Seek(const StepPosition& position) {
    (void)position;
    return absl::OkStatus();
  }

  // Returns whether any of the synchronous workers requests to stop. All of
  // them call it between two calls of Run().
  virtual absl::StatusOr<bool> AgreeToStop(bool wants_stop) {
    return wants_stop;
  }
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

// A strategy's statistics of a run, for summary.json.
struct StrategyReport {
  int64_t retry_count = 0;     // Steps repeated because a task was lost.
  int64_t recovery_count = 0;  // Lost tasks that returned.
  // One line per task: "worker 0 localhost:20001 incarnation 6f1c02a9".
  std::vector<std::string> tasks;
};

// An earlier state of training, restored after a loss.
struct Rollback {
  // The checkpoint from which variables were restored; empty: they have their
  // initial values.
  std::string checkpoint;
  // Steps that had succeeded and are undone.
  int64_t undone_step_count = 0;
  // The result of SetProgressSource()'s function for that state; empty if there
  // was none, because training had not begun.
  std::string progress;
};

// Defines where replicas and variables are placed and how replicas agree. Model
// code does not depend on it.
//
// Equivalent to: tf.distribute.Strategy.
//
// Thread-safe.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // "default", "parameter_server", ...: the name in logs and summary.json.
  virtual absl::string_view name() const = 0;

  // The number of replicas whose gradients are summed before they are applied.
  virtual int num_replicas_in_sync() const = 0;

  // True if steps draw from copies of a dataset in several processes and not
  // from one iterator. In this case there is no single pass over the data, and
  // an epoch is a number of steps.
  virtual bool draws_from_copies() const = 0;

  virtual VariableStore& variables() = 0;

  // The parameters of `step` are the components of an element of `dataset`, in
  // order; `dataset` is batched.
  virtual absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(
      const Graph& step, const Dataset& dataset, LoopKind kind) = 0;

  // True if this process writes the output of a run. Exactly one of the
  // synchronous processes does.
  virtual bool is_chief() const { return true; }

  // A seed that is equal on all synchronous processes, for programs that were
  // given none. Unset if there are no other processes.
  virtual std::optional<uint64_t> shared_seed() const { return std::nullopt; }

  // Returns the chief's `bytes` on all synchronous processes. All of them call
  // it between steps. `what` names what they wait for.
  virtual absl::StatusOr<std::string> FromChief(absl::string_view what,
                                                std::string bytes) {
    (void)what;
    return bytes;
  }

  // For strategies whose variables can be lost with a process and restored from
  // a checkpoint: `source` is called whenever a checkpoint is made, on the
  // thread that makes it, and returns the progress of training. Null: none.
  virtual void SetProgressSource(std::function<std::string()> source) {
    (void)source;
  }

  // For strategies whose variables can be lost with a process that is
  // preempted: `save` is called between two steps, on the thread that runs
  // them, before that process exits. Null: none.
  virtual void SetPreemptionSaver(std::function<absl::Status()> save) {
    (void)save;
  }

  // After a step, a read or a save has failed with `status`: returns whether
  // training was rolled back in the meantime. If a rollback is in progress,
  // blocks until it is complete. The caller resets its progress to the returned
  // state, and its loops continue from there.
  //   kDeadlineExceeded  the lost task does not return
  virtual absl::StatusOr<std::optional<Rollback>> AwaitRollback(
      const absl::Status& status) {
    (void)status;
    return std::optional<Rollback>();
  }

  // Statistics of the run so far.
  virtual StrategyReport Report() const { return {}; }
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGY_H_
