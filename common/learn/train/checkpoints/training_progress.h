#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/base/metric_direction.h"
#include "common/learn/train/checkpoints/training_state.h"

namespace muster {

// Access of callbacks to the running Fit(). Callbacks that save and restore
// training use its state.
class TrainingProgress {
 public:
  virtual ~TrainingProgress() = default;

  // Returns the state after the last step, or after the epoch if the epoch has
  // ended.
  virtual TrainingState State() const = 0;

  // Resumes training from `state`. May be called in OnTrainBegin(); takes
  // effect when all callbacks have returned from it. Does not restore
  // variables.
  //   kFailedPrecondition  a step has already been run
  virtual absl::Status ResumeFrom(const TrainingState& state) = 0;

  // True if training continues that of an earlier process, whose variables are
  // in place. Callbacks then restore nothing.
  virtual bool is_continued() const = 0;

  // True if an operator ends training early. In that case State() is the state
  // after the last step only until the hooks of the epoch's end are called.
  virtual bool is_interrupted() const = 0;

  // Returns the direction in which a value of the logs improves, including
  // values of validation. Unset for values that are neither losses nor metrics,
  // and for metrics without a direction, such as counts.
  virtual std::optional<MetricDirection> DirectionOf(
      absl::string_view name) const = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_
