#ifndef COMMON_LEARN_TRAIN_EVALUATOR_TRAIN_AND_EVALUATE_H_
#define COMMON_LEARN_TRAIN_EVALUATOR_TRAIN_AND_EVALUATE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/evaluator/checkpoint_evaluator.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/model.h"
#include "common/net/process/task.h"

namespace muster {

struct TrainSpec {
  // Creates the model and compiles it with this strategy.
  std::function<absl::StatusOr<Model>(Strategy&)> make_model;
  // Creates the strategy for training; null: the default strategy.
  std::function<absl::StatusOr<std::unique_ptr<Strategy>>(Task&)>
      make_strategy = nullptr;
  Dataset data;
  // The callbacks must write checkpoints into `checkpoint_dir`.
  FitOptions fit = {};
  std::string checkpoint_dir = "";
};

struct EvalSpec {
  Dataset data;
  std::optional<int64_t> steps = std::nullopt;  // Batches; unset: all.
  // For event files, exports and evaluator.json.
  std::string log_dir = "";
  std::vector<ExporterOptions> exporters = {};
  // The maximum time that an evaluator waits for a checkpoint or the end of
  // training.
  absl::Duration timeout = absl::Hours(7 * 24);
};

struct TrainAndEvaluateResult {
  History history;                            // If this task trains.
  std::vector<ScoredCheckpoint> evaluations;  // If it evaluates.
};

// Runs training and evaluation on a cluster. All tasks make the same call. A
// task of type evaluator evaluates the checkpoints (CheckpointEvaluator) until
// training has ended. The other tasks train and never wait for the evaluator. A
// single process does both: after each epoch it evaluates the new checkpoints
// with a second model.
//
// Errors: those of Model::Fit() and CheckpointEvaluator::Run().
//
// Equivalent to: tf.estimator.train_and_evaluate.
absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Task& task,
                                                        const TrainSpec& train,
                                                        const EvalSpec& eval);

// Runs `train`, which writes checkpoints into `checkpoint_dir`. Before that,
// removes the marker of the end of an earlier training (training_end.h); writes
// a new one if `train` succeeds. If several replicas train in sync, only the
// chief accesses the folder.
//
// Errors: those of `train` and of the disk.
absl::Status TrainUntilTheEnd(const Strategy& strategy,
                              const std::string& checkpoint_dir,
                              const std::function<absl::Status()>& train);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_TRAIN_AND_EVALUATE_H_
