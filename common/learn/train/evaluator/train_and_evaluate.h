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
#include "common/learn/train/evaluator/checkpoint_evaluator.h"
#include "common/learn/train/evaluator/exporter.h"
#include "common/learn/train/history.h"
#include "common/learn/train/model.h"
#include "common/net/process/task.h"

namespace muster {

struct TrainSpec {
  // Makes the model and compiles it with this strategy.
  std::function<absl::StatusOr<Model>(Strategy&)> make_model;
  // That training runs with; null: the default one.
  std::function<absl::StatusOr<std::unique_ptr<Strategy>>(Task&)>
      make_strategy = nullptr;
  Dataset data;
  // Its callbacks write checkpoints into `checkpoint_dir`.
  FitOptions fit = {};
  std::string checkpoint_dir = "";
};

struct EvalSpec {
  Dataset data;
  std::optional<int64_t> steps = std::nullopt;  // Batches; unset: all.
  // Event files, exports and what has been scored.
  std::string log_dir = "";
  std::vector<ExporterOptions> exporters = {};
  // How long an evaluator waits for a checkpoint or the end of training.
  absl::Duration timeout = absl::Hours(7 * 24);
};

struct TrainAndEvaluateResult {
  History history;                            // Where this task trains.
  std::vector<ScoredCheckpoint> evaluations;  // Where it evaluates.
};

// What every task of a cluster calls alike. A task of type evaluator scores the
// checkpoints (CheckpointEvaluator) until the others have ended; the others
// train, and wait for it at no time. A process alone does both: after each
// epoch it scores, with a model of its own, what has been written.
//
//   as Model::Fit(), and as CheckpointEvaluator::Run()
//
// Equivalent to: tf.estimator.train_and_evaluate.
absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Task& task,
                                                        const TrainSpec& train,
                                                        const EvalSpec& eval);

// Around a training that writes checkpoints into `checkpoint_dir`: takes away
// the end that an earlier training has left there, runs `train`, and says that
// this one has ended if it did so without an error. Where several train in sync
// the chief alone touches the folder.
//   as `train`, and the disk's
absl::Status TrainUntilTheEnd(const Strategy& strategy,
                              const std::string& checkpoint_dir,
                              const std::function<absl::Status()>& train);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_TRAIN_AND_EVALUATE_H_
