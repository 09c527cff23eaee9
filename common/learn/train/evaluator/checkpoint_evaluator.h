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
#include "common/core/base/clock.h"
#include "common/dataset/dataset.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/events/event_writer.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/history.h"
#include "common/learn/train/model.h"

namespace muster {

// A checkpoint that has been scored.
struct ScoredCheckpoint {
  int64_t number = 0;  // In "ckpt-7".
  std::string prefix;
  int64_t iterations = 0;  // Gradients applied when it was written.
  Logs logs;
};

// Scores every checkpoint that a training writes, in the order of their
// numbers: the newest alone would hide when a model got worse. Values go to an
// event file, "evaluation_<metric>_vs_iterations" at the updates made.
//
// What has been scored is kept in `log_dir`/evaluator.json, written after the
// events: an evaluator that is started again goes on behind the last one, and
// may say one a second time. A checkpoint that was found and is gone when its
// turn comes, because training keeps only so many, is named in the log; one
// that comes and goes between two looks is not seen at all.
//
// Training does not know of it, and waits for nothing.
//
// Run() is called once; Interrupt() is thread-safe, the rest is not.
class CheckpointEvaluator {
 public:
  struct Options {
    // Where training writes; need not exist yet.
    std::string checkpoint_dir;
    std::string checkpoint_name = "ckpt";
    // Event files, what has been scored, and the exports, in export/.
    std::string log_dir;
    // Batches of the data; unset: all.
    std::optional<int64_t> steps;
    std::vector<ExporterOptions> exporters;
    // From one look at the folder to the next.
    absl::Duration poll_interval = absl::Milliseconds(500);
    // While it waits, it says so this often.
    absl::Duration report_interval = absl::Seconds(5);
    // How long to wait for a checkpoint, or for the end of training.
    absl::Duration timeout = absl::Hours(7 * 24);
    Clock* clock = Clock::Real();  // Borrowed.
    Disk* disk = nullptr;          // Borrowed; null: the machine's.
    // Told after each; null: nobody.
    std::function<void(const ScoredCheckpoint&)> on_scored;
  };

  // `model` is compiled with a loss, and borrowed. Reads what has been scored
  // before.
  //   kInvalidArgument  an option makes no sense; names it
  //   kDataLoss         the file of what has been scored is damaged; names it
  static absl::StatusOr<std::unique_ptr<CheckpointEvaluator>> Create(
      Model* model, const Dataset& data, Options options);

  // Scores what is there and what comes, until training has said that it is
  // over (training_end.h) and all is scored. An end that an evaluator has
  // already obeyed is one of an earlier training in this folder.
  //   kDeadlineExceeded  nothing came for too long; says what was waited for
  //   kCancelled         Interrupt() was called
  //   kNotFound, kInvalidArgument  the checkpoints are of another model
  //   others             of the evaluation and the disk
  absl::StatusOr<std::vector<ScoredCheckpoint>> Run();

  // Scores what is there and has not been scored; returns how many.
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
  // Those of the folder that are not scored yet, by their numbers.
  absl::StatusOr<std::vector<Found>> FindNew() const;
  // Whether it was scored: not if it went away or is damaged.
  absl::StatusOr<bool> Score(const Found& found);
  absl::StatusOr<int64_t> ReadIterations(const Found& found) const;
  absl::Status WriteEvents(const ScoredCheckpoint& scored);
  // Whether training is over; the first look after that finds all checkpoints.
  absl::StatusOr<bool> HasEnded();
  absl::Status ExportFinal();
  // Gives the model the weights of this checkpoint.
  absl::Status Load(int64_t number);
  // Until it is time to look again.
  absl::Status Wait(absl::Time waiting_since) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string DescribeWait() const;

  Model* const model_;
  const Dataset data_;
  const Options options_;
  Disk* const disk_;
  EventWriter events_;
  bool has_warned_of_events_ = false;
  std::vector<Exporter> exporters_;

  std::set<int64_t> scored_;  // Over restarts.
  std::string obeyed_end_;    // The id of the training that ended so.
  std::string seen_end_;      // The id in the folder, once it is there.
  std::vector<ScoredCheckpoint> results_;  // Of this run.
  absl::Time next_report_ = absl::InfinitePast();

  absl::Mutex mutex_;
  bool is_interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_CHECKPOINT_EVALUATOR_H_
