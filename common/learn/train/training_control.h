#ifndef COMMON_LEARN_TRAIN_TRAINING_CONTROL_H_
#define COMMON_LEARN_TRAIN_TRAINING_CONTROL_H_

#include "common/learn/train/checkpoints/training_progress.h"

namespace muster {

// State through which a call of Fit() and its callbacks communicate, owned by
// their model. Not thread-safe.
struct TrainingControl {
  // Set by a callback to stop training after the current step.
  bool stops = false;
  // True if an operator has ended training, which is to be resumed later.
  bool is_interrupted = false;
  TrainingProgress* progress = nullptr;  // Borrowed; null unless Fit() runs.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TRAINING_CONTROL_H_
