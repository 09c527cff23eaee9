#ifndef COMMON_LEARN_TRAIN_EVALUATOR_CHECKPOINT_EVALUATOR_H_
#define COMMON_LEARN_TRAIN_EVALUATOR_CHECKPOINT_EVALUATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/lifetime.h"
#include "common/core/system/clock.h"
#include "common/core/system/wait_line.h"
#include "common/dataset/dataset.h"
#include "common/io/events/event_writer.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/model.h"

namespace muster {

// A checkpoint that has been evaluated.
struct ScoredCheckpoint {
  int64_t number = 0;  // For example 7 for "ckpt-7".
  std::string prefix;
  int64_t iterations = 0;  // Updates applied when it was written.
  Logs logs;
};

// Evaluates every checkpoint that a training job writes, in the order of their
// numbers. Evaluating only the newest one would hide intermediate regressions.
// The values are written to an event file as
// "evaluation_<metric>_vs_iterations", where the step is the number of updates.
//
// The evaluated checkpoints are recorded in `log_dir`/evaluator.json, which is
// written after the events. A restarted evaluator continues after the last
// recorded one, and may evaluate one checkpoint twice. If a checkpoint was
// found but has been removed before its evaluation (see max_to_keep), this is
// logged. A checkpoint that is written and removed between two polls is not
// detected.
//
// The training job does not communicate with the evaluator or wait for it.
//
// Run() may be called once. Interrupt() is thread-safe; the other functions are
// not.
class CheckpointEvaluator {
 public:
  struct Options {
    // The folder to which training writes; it may not exist yet.
    std::string checkpoint_dir;
    std::string checkpoint_name = "ckpt";
    // For event files, evaluator.json, and the exports in export/.
    std::string log_dir;
    // Number of batches to evaluate; unset: all.
    std::optional<int64_t> steps;
    std::vector<ExporterOptions> exporters;
    // Time between polls of the folder.
    absl::Duration poll_interval = absl::Milliseconds(500);
    // Time between log messages while waiting.
    absl::Duration report_interval = absl::Seconds(5);
    // The maximum time to wait for a checkpoint or for the end of training.
    absl::Duration timeout = absl::Hours(7 * 24);
    Clock* clock = Clock::Real();  // Borrowed.
    Disk* disk = nullptr;          // Borrowed; null: the local disk.
    // Called after each evaluation; may be null.
    std::function<void(const ScoredCheckpoint&)> on_scored;
  };

  // `model` must be compiled with a loss; it is borrowed: if it is destroyed or
  // moved first, calls return kFailedPrecondition. Reads evaluator.json if it
  // exists.
  //   kInvalidArgument  an option is invalid; the message names it
  //   kDataLoss         evaluator.json is damaged; the message names the file
  static absl::StatusOr<std::unique_ptr<CheckpointEvaluator>> Create(
      Model* model, const Dataset& data, Options options);

  // Evaluates existing and new checkpoints until training has ended
  // (training_end.h) and all checkpoints are evaluated. An end that an earlier
  // run of the evaluator has already handled belongs to an earlier training in
  // this folder and is ignored.
  //   kDeadlineExceeded            no checkpoint was written in time; the
  //                                message says what was expected
  //   kCancelled                   Interrupt() was called
  //   kNotFound, kInvalidArgument  the checkpoints are of another model
  //   others                       errors of the evaluation and the disk
  absl::StatusOr<std::vector<ScoredCheckpoint>> Run();

  // Evaluates the checkpoints that exist and have not been evaluated. Returns
  // their number.
  absl::StatusOr<int> ScoreNew();

  void Interrupt() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Found {
    int64_t number = 0;
    std::string prefix;
  };

  CheckpointEvaluator(Model* model, Dataset data, Options options);

  absl::Status LoadState();
  absl::Status SaveState();
  // Returns the checkpoints in the folder that have not been evaluated, by
  // number.
  absl::StatusOr<std::vector<Found>> FindNew() const;
  // Returns true if the checkpoint was evaluated; false if it was removed or is
  // damaged.
  absl::StatusOr<bool> Score(const Found& found);
  absl::StatusOr<int64_t> ReadIterations(const Found& found) const;
  absl::Status WriteEvents(const ScoredCheckpoint& scored);
  // Returns true if training has ended. The next poll after that finds all
  // checkpoints.
  absl::StatusOr<bool> HasEnded();
  absl::Status ExportFinal();
  // Loads the weights of this checkpoint into the model.
  absl::Status Load(int64_t number);
  // Waits until the next poll is due.
  absl::Status Wait(absl::Time waiting_since) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string DescribeWait() const;

  // Checked by ScoreNew().
  Model& model() const { return *model_.get(); }

  const Borrowed<Model> model_;
  const Dataset data_;
  const Options options_;
  Disk* const disk_;
  EventWriter events_;
  bool has_warned_of_events_ = false;
  std::vector<Exporter> exporters_;

  std::set<int64_t> scored_;  // Including those before a restart.
  std::string handled_end_;   // The id of the last end that was handled.
  std::string seen_end_;      // The id in the folder; empty if none.
  std::vector<ScoredCheckpoint> results_;  // Of this run.
  ReportPace pace_{absl::InfinitePast(), absl::ZeroDuration()};
  WaitLine wait_line_;

  absl::Mutex mutex_;
  bool is_interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_CHECKPOINT_EVALUATOR_H_
