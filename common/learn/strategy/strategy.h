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

// Which step a loop runs next, so that another loop over the same data can go
// on there.
struct StepPosition {
  // How often the data has been gone through to its end.
  int64_t pass = 0;
  // Elements that steps of this pass have had: global batches.
  int64_t element = 0;
  // Steps ever run: what each draws its random numbers by.
  int64_t step = 0;
};

// One traced step, run over and over on the elements of a dataset.
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
    // Stopped before `step_count_max` because the dataset has ended. The next
    // Run() starts at its beginning again.
    bool end_of_data = false;
    // Stopped because another worker that trains in sync wants to stop.
    bool was_stopped = false;
    // Stopped as StopWhen() asks, here or on another worker.
    bool was_told_to_stop = false;
  };

  virtual ~StepLoop() = default;

  // Asks for steps to be started so many at a time, where starting one costs.
  // They are the same steps, and each has its results. Before Run().
  virtual void GroupSteps(int steps_per_start) { (void)steps_per_start; }

  // Runs up to `step_count_max` more steps and waits for them. Steps may finish
  // in another order than they were started in.
  virtual absl::StatusOr<Outcome> Run(int64_t step_count_max,
                                      OnStep on_step) = 0;

  // Whether Run() is to stop is asked before each step; once it is to, that
  // step is the last, on all workers that train in sync, and as good as any
  // other. Called between two Run()s, by all of them or none. Returns whether
  // this kind of loop asks.
  virtual bool StopWhen(std::function<bool()> is_to_stop) {
    (void)is_to_stop;
    return false;
  }

  // What comes after the last step, also while `on_step` is told of it.
  virtual StepPosition position() const { return {}; }

  // Between two Run()s: goes on at `position` of a loop over the same data,
  // which is read again up to there. Means nothing where steps draw from
  // copies of the data.
  //   kDataLoss  the data has fewer elements now
  //   others     of the data
  virtual absl::Status Seek(const StepPosition& position) {
    (void)position;
    return absl::OkStatus();
  }

  // Between two Run()s: whether any of the workers that train in sync wants to
  // stop. All of them call it.
  virtual absl::StatusOr<bool> AgreeToStop(bool wants_stop) {
    return wants_stop;
  }
};

enum class LoopKind {
  kTrain,  // Steps update variables; order and visitation as the strategy.
  // Steps update variables, and every element, drawn by this process, is seen
  // once.
  kTrainOnBatch,
  kEvaluate,  // Every element is seen exactly once.
  // Every element is seen exactly once, and steps finish in the order of the
  // data. Results have a row for each row of the batch.
  kPredict,
};

// What a strategy can tell about a run, for summary.json.
struct StrategyReport {
  int64_t retry_count = 0;     // Steps run again because a task was lost.
  int64_t recovery_count = 0;  // Lost tasks that came back.
  // One line for each task: "worker 0 localhost:20001 incarnation 6f1c02a9".
  std::vector<std::string> tasks;
};

// Training as it was before, after a loss.
struct Rollback {
  // The checkpoint that variables were restored from; empty: they have their
  // first values.
  std::string checkpoint;
  // Steps that had been taken and are undone.
  int64_t undone_step_count = 0;
  // What the source of SetProgressSource() said of that moment; empty when it
  // was asked by nobody then, because training had not begun.
  std::string progress;
};

// Decides where replicas and variables live and how replicas agree. Model code
// does not change when the strategy does.
//
// Equivalent to: tf.distribute.Strategy.
//
// Thread-safe.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // "default", "parameter_server", ...: what logs and summary.json say.
  virtual absl::string_view name() const = 0;

  // Replicas whose gradients are added up before they are applied.
  virtual int num_replicas_in_sync() const = 0;

  // Whether steps draw from copies of a dataset, in processes that come and go,
  // and not from one iterator. Then nobody goes through the data just once, and
  // an epoch is a number of steps.
  virtual bool draws_from_copies() const = 0;

  virtual VariableStore& variables() = 0;

  // The parameters of `step` are the components of an element of `dataset`, in
  // order; `dataset` is batched.
  virtual absl::StatusOr<std::unique_ptr<StepLoop>> CreateLoop(
      const Graph& step, const Dataset& dataset, LoopKind kind) = 0;

  // Whether this is the process that writes what comes out of a run: of those
  // that train in sync one does, or all would write the same.
  virtual bool is_chief() const { return true; }

  // A seed that all processes that train in sync have alike, for those who were
  // told none. Unset where there are no others.
  virtual std::optional<uint64_t> shared_seed() const { return std::nullopt; }

  // Those bytes that the chief gives, on all processes that train in sync; all
  // of them call it between steps, and `what` says of what they wait for.
  virtual absl::StatusOr<std::string> FromChief(absl::string_view what,
                                                std::string bytes) {
    (void)what;
    return bytes;
  }

  // Where variables may be lost with a process and taken back from a
  // checkpoint: `source` is asked whenever one is made, on the thread that
  // makes it, where training stands then. Null: nobody is asked any more.
  virtual void SetProgressSource(std::function<std::string()> source) {
    (void)source;
  }

  // Where variables may be lost with a process that was told to end: `save` is
  // called between two steps, on the thread that runs them, before that process
  // is let go. Null: nobody saves any more.
  virtual void SetPreemptionSaver(std::function<absl::Status()> save) {
    (void)save;
  }

  // After a step, a read or a save has failed with `status`: whether training
  // was rolled back since, or is about to be, and then waits for that. The
  // caller goes back to what it was told, and its loops go on from there.
  //   kDeadlineExceeded  what was lost does not come back
  virtual absl::StatusOr<std::optional<Rollback>> AwaitRollback(
      const absl::Status& status) {
    (void)status;
    return std::optional<Rollback>();
  }

  // How it has gone so far.
  virtual StrategyReport Report() const { return {}; }
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGY_H_
