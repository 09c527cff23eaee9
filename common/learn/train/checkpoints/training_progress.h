#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_

#include "absl/status/status.h"
#include "common/learn/train/checkpoints/training_state.h"

namespace muster {

// Access to the progress of Fit(), for callbacks that save and restore it.
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
  virtual absl::Status GoOnFrom(const TrainingState& state) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_PROGRESS_H_
